#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/max_pool_small.hpp"
#include "kernels/pool_axis.hpp"

// The largest elements of windows of one size, row by row: what a window finds in one row of the input does not depend
// on the windows above and below it, so every row is gone along once, and what it gives is kept for all windows that
// span it. Of k x k elements, a window takes 2 k comparisons.

namespace taper::kernels {

/// The windows of rows of one width, some neighbours of them at a time. Places are below 2^30 for float32.
template <class T>
class RowMaxima {
 public:
  /// Windows that are worked on at once.
  static constexpr std::int64_t kTile = 256;

  /// Whether windows are no longer than there is room for and there is a way for their stride.
  static bool fits(const PoolAxis& axis) {
    const Window1d& w = axis.window;
    const std::int64_t widest = kApart <= kLine ? kLine : 2;
    return !axis.is_adaptive && w.kernel <= kLine - kTile - 2 * N && w.dilation <= kLine && w.stride <= widest;
  }

  explicit RowMaxima(const PoolAxis& axis) : axis_(axis), w_(axis.window) {}

  /// Goes to the windows [first, first + n) of all rows.
  void go_to(std::int64_t first, std::int64_t n) {
    n_ = n, start_ = first * w_.stride - w_.padding_left;
    for (std::int64_t& key : key_) key = -1;
    rows_ = 0, used_ = 0;
  }

  /// Takes in row `x`, whose first element is at `place` of its plane; `key` tells rows from each other, and from x on
  /// `room` elements may be read.
  [[gnu::noinline]] void take(const T* x, std::int64_t place, std::int64_t key, std::int64_t room) {
    const std::int64_t slot = key % kSlots;
    if (key_[slot] != key) {
      // A row that is listed keeps its slot.
      if ((used_ >> slot & 1) != 0 || rows_ == kSlots) join();
      key_[slot] = key;
      find(x, static_cast<Place>(place), room, row_[slot]);
    }
    used_ |= std::uint32_t{1} << slot;
    list_[rows_++] = &row_[slot];
  }

  /// Stores what the rows gave since the last time. A null `index` is not written.
  [[gnu::noinline]] void store(T* y, std::int64_t* index) {
    if (rows_ > 1) join();
    const Row& all = *list_[0];
    for (std::int64_t o = 0; o < n_; ++o) y[o] = all.best[o];
    for (std::int64_t o = 0; o < n_ && index != nullptr; ++o) index[o] = all.where[o];
    rows_ = 0, used_ = 0;
  }

 private:
  using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  static constexpr int N = kFullVector<T>;
  using V = typename Several<T, N>::type;
  using Places = typename Several<Place, N>::type;

  static constexpr std::int64_t kSlots = 16, kLine = 4096;
  /// The least stride of windows whose elements are brought together one by one: pairs of float32 have loops for two,
  /// and with AVX2 all strides of one row.
#if defined(__AVX2__) && !defined(__AVX512F__)
  static constexpr std::int64_t kApart = sizeof(T) == 8 ? 2 : kLine + 1;
#else
  static constexpr std::int64_t kApart = sizeof(T) == 8 ? 2 : 3;
#endif
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();

  struct Row {
    alignas(kVectorWidth) T best[kTile + N];
    alignas(kVectorWidth) Place where[kTile + N];

    void put(std::int64_t o, const V& v, const Places& at) {
      std::memcpy(best + o, &v, sizeof v);
      std::memcpy(where + o, &at, sizeof at);
    }
  };

  /// Joins the listed rows to one.
  [[gnu::noinline]] void join() {
    for (std::int64_t o = 0; o < n_; o += N) {
      V best = several_at<T, N>(list_[0]->best + o);
      Places where = several_at<Place, N>(list_[0]->where + o);
      for (std::int64_t r = 1; r < rows_; ++r)
        take_larger(several_at<T, N>(list_[r]->best + o), several_at<Place, N>(list_[r]->where + o), best, where);
      sum_.put(o, best, where);
    }
    list_[0] = &sum_, rows_ = 1, used_ = 0;
  }

  /// Where the windows begin in a row whose first one begins at `at`.
  [[gnu::always_inline]] Places begins(std::int64_t at) const {
    Places lanes;
#pragma GCC unroll 16
    for (int l = 0; l < N; ++l) lanes[l] = static_cast<Place>(l);
    return lanes * static_cast<Place>(w_.stride) + static_cast<Place>(at);
  }
  /// The first taps of windows that begin there: those in front of the row are padding.
  [[gnu::always_inline]] Places first_taps(const Places& begin) const {
    Places taps = begin < 0 ? Places{} : begin;
    if (w_.dilation > 1)
      for (int l = 0; l < N && begin[l] < 0; ++l)
        taps[l] = begin[l] + static_cast<Place>((w_.dilation - 1 - begin[l]) / w_.dilation * w_.dilation);
    return taps;
  }

  /// The elements of row `x` at `at` and next to it, or what loses to everything beyond the row.
  [[gnu::always_inline]] V neighbours(const T* x, std::int64_t at) const {
    if (at >= 0 && at + N <= axis_.in) return several_at<T, N>(x + at);
#if defined(__AVX2__)
    if constexpr (std::is_same_v<T, float>) return Columns(at, axis_.in).of(x, kLowest);
#endif
    return cut_off(x, at);
  }
  [[gnu::noinline]] V cut_off(const T* x, std::int64_t at) const {
    T some[N];
    for (std::int64_t l = 0; l < N; ++l, ++at) some[l] = at >= 0 && at < axis_.in ? x[at] : kLowest;
    return several_at<T, N>(some);
  }

  /// What the windows find in a row.
  [[gnu::noinline]] void find(const T* x, Place place, std::int64_t room, Row& row) {
    const std::int64_t stride = w_.stride, dilation = w_.dilation, taps = w_.kernel;
    if (stride == 1 && dilation == 1 && taps > 6) return find_long(x, place, row);
    if constexpr (kApart <= kLine)
      if (stride >= kApart) return find_apart(x, place, room, row);
    const auto step = static_cast<Place>(dilation);
    for (std::int64_t o = 0; o < n_; o += N) {
      std::int64_t first = start_ + o * stride;
      V best = V{} + kLowest;
      Places at = begins(first), where = first < 0 ? first_taps(at) : at;
      for (std::int64_t t = 0; t < taps; ++t, first += dilation, at += step) {
        V v = neighbours(x, first);
        if constexpr (kApart > 2)
          if (stride == 2) v = PairLanes<T>::ordered(PairLanes<T>::template of_pairs<0>(v, neighbours(x, first + N)));
        take_larger(v, at, best, where);
      }
      row.put(o, best, where + place);
    }
  }

  /// The same for windows more than two elements apart: those that no border cuts off a vector at a time, the others
  /// one by one.
  [[gnu::noinline]] void find_apart(const T* x, Place place, std::int64_t room, Row& row) const {
    const std::int64_t s = w_.stride, step = w_.dilation, taps = w_.kernel, reach = (taps - 1) * step, in = axis_.in;
    const std::int64_t begin = std::min(n_, start_ < 0 ? (-start_ + s - 1) / s : 0),
                       end = start_ + reach < in ? std::clamp((in - 1 - reach - start_) / s + 1, begin, n_) : begin;
    const std::int64_t first = start_ + begin * s, whole = (end - begin + N - 1) / N * N;
    // Vectors are completed by windows that nobody asks for where that stays within the planes.
    const bool completes = end - begin > 1 && first + (whole - 1) * s + reach < room;
    const std::int64_t last = begin + (completes ? whole : (end - begin) / N * N);
    const Places begins_at = begins(first) + place;
    for (std::int64_t o = begin; o < last; o += N) {
      const T* from = x + start_ + o * s;
      Places at = begins_at + static_cast<Place>((o - begin) * s), where = at;
      V best = every<V>(from, s);
      for (std::int64_t t = 1; t < taps; ++t) {
        from += step, at += static_cast<Place>(step);
        take_larger(every<V>(from, s), at, best, where);
      }
      row.put(o, best, where);
    }
    find_one_by_one(x, place, 0, begin, row);
    find_one_by_one(x, place, std::min(last, end), n_, row);
  }

  /// What the windows [first, last) find in a row, which a border may cut off.
  [[gnu::noinline]] void find_one_by_one(const T* x, Place place, std::int64_t first, std::int64_t last,
                                         Row& row) const {
    for (std::int64_t o = first; o < last; ++o) {
      std::int64_t t = 0, at = start_ + o * w_.stride;
      for (; at < 0; at += w_.dilation) ++t;
      row.best[o] = kLowest, row.where[o] = place + static_cast<Place>(at);
      for (; t < w_.kernel && at < axis_.in; ++t, at += w_.dilation)
        if (exceeds(x[at], row.best[o])) row.best[o] = x[at], row.where[o] = place + static_cast<Place>(at);
    }
  }

  /// The same by maxima over 2, 4, 8, ... neighbours. A window is two such maxima that overlap: what is chosen first
  /// among equals, or last among NaN, does not depend on that.
  [[gnu::noinline]] void find_long(const T* x, Place place, Row& row) {
    std::int64_t count = n_ + w_.kernel - 1, width = 1;
    for (std::int64_t i = 0; i < count; i += N) {
      const V v = neighbours(x, start_ + i);
      std::memcpy(line_ + i, &v, sizeof v);
    }
    for (std::int64_t i = 0; i < count; ++i) place_[i] = static_cast<Place>(start_ + i);
    // m_i = max(x_i, ..., x_{i + 2 width - 1}) = max(m_i, m_{i + width})
    for (; 2 * width <= w_.kernel; width *= 2) {
      count -= width;
      for (std::int64_t i = 0; i < count; i += N) {
        V best = several_at<T, N>(line_ + i);
        Places where = several_at<Place, N>(place_ + i);
        take_larger(several_at<T, N>(line_ + i + width), several_at<Place, N>(place_ + i + width), best, where);
        std::memcpy(line_ + i, &best, sizeof best);
        std::memcpy(place_ + i, &where, sizeof where);
      }
    }
    for (std::int64_t o = 0; o < n_; o += N) {
      V best = V{} + kLowest;
      Places where = first_taps(begins(start_ + o));
      for (const std::int64_t i : {o, o + w_.kernel - width})
        take_larger(several_at<T, N>(line_ + i), several_at<Place, N>(place_ + i), best, where);
      row.put(o, best, where + place);
    }
  }

  const PoolAxis& axis_;
  const Window1d& w_;
  std::int64_t n_ = 0, start_ = 0;  ///< windows, and where the first one begins
  T line_[kLine + N];               ///< elements of a row, for long windows
  Place place_[kLine + N];          ///< in the row
  Row row_[kSlots], sum_;
  std::int64_t key_[kSlots];  ///< of the rows that are kept
  const Row* list_[kSlots + 1];
  std::int64_t rows_ = 0;   ///< that are listed
  std::uint32_t used_ = 0;  ///< slots of these
};

}  // namespace taper::kernels
