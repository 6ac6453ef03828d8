#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/product_vector.hpp"

/// The register tiles that products are made of, and what is brought near while they run; for product.cpp and
/// product_rows.hpp alone.
namespace taper::kernels {

/// Rows of the tallest register tile: as many as leave room for two vectors of b, one of a and one product, or, of 32
/// registers, for tiles of one vector. Six rows use all of 16 registers: with two lanes (float64 in 16 bytes) GCC then
/// keeps a sum in memory, and every step waits for it.
template <class T>
inline constexpr int kTileRows = kLanes<T> == 2       ? 4
                                 : kVectorWidth == 64 ? (sizeof(T) == sizeof(float) ? 16 : 12)
                                                      : 6;

/// Rows of the tallest tile of so many vectors: wider ones need more registers for b. 0: there is none, as
/// for doubles, to keep the library small.
template <class T>
constexpr int tallest(int width) {
  switch (width) {
    case 8:
      return 1;
    case 4:
      return kVectorWidth == 64 ? 6 : kVectorWidth == 32 && sizeof(T) == sizeof(float) ? 3 : 2;
    case 3:
      return kVectorWidth == 64 && sizeof(T) == sizeof(float) ? 8 : 0;
    case 2:
      return kVectorWidth == 64 ? 12 : kTileRows<T>;
    default:
      return kTileRows<T>;
  }
}

/// The same where rows that lie whole pages apart push each other out of the nearest cache.
template <class T>
int tallest(int width, bool is_apart) {
  return is_apart ? tallest<T>(width) : std::min(tallest<T>(width), 6);
}

/// Vectors of the widest tile of `rows` rows: enough independent sums to hide the latency of the additions.
template <class T>
constexpr int widest(std::int64_t rows) {
  return rows == 1 ? 8 : rows <= tallest<T>(4) ? 4 : 2;
}

/// Vectors of the tiles that large products are made of. With as many sums, wide tiles load less for each than tall
/// ones.
inline constexpr int kMainWidth = kVectorWidth == 64 ? 4 : 2;

/// Rows of a tile that are found from one pointer: processors add one or two distances to it by themselves.
inline constexpr int kPointerRows = 3;

/// The same where terms are listed, which would take an addition for each pointer.
inline constexpr int kListedRows = kVectorWidth == 32 ? 1 : kPointerRows;

/// Whether tiles that do not look up both operands' terms have b's vectors next to each other: distances that are known
/// take neither register nor instruction.
inline constexpr bool kEvenTiles = kVectorWidth == 32;

/// Whether a call may compute several tiles below each other, with fewer instructions between them, but longer code.
inline constexpr bool kRuns = kVectorWidth == 32;

/// Tiles that a call computes of so many: a few where they are not the only thing to do.
inline constexpr int kSomeTiles = kRuns ? 3 : 1;
constexpr std::int64_t tiles_together(std::int64_t tiles, bool alone) {
  return kRuns && alone ? tiles : std::min<std::int64_t>(tiles, kSomeTiles);
}

/// Rows of vectors: vector v of row r is at `data[r * row + vector[v]]`.
template <class T>
struct Vectors {
  T* data;
  std::int64_t row;
  const std::int64_t* vector;
};

/// The first vectors of a row next to each other, and one vector for all. `static`, as GCC exports variable templates
/// that are not, whatever visibility it is asked for.
template <class T>
static constexpr std::int64_t kSide[8] = {
    0, kLanes<T>, 2 * kLanes<T>, 3 * kLanes<T>, 4 * kLanes<T>, 5 * kLanes<T>, 6 * kLanes<T>, 7 * kLanes<T>};
inline constexpr std::int64_t kSame[8] = {};

/// Zeros, with which sums begin that begin with nothing else, whatever their row and vector.
template <class T>
alignas(kVectorWidth) static constexpr T kZeros[kLanes<T>] = {};
template <class T>
static constexpr Vectors<const T> kZeroRows{kZeros<T>, 0, kSame};

/// What a tile multiplies, as in `ListedOperands`, and where its sums go: to = from + the sum, or, of several chains,
/// to = to + (from + the sum) if it `adds`.
template <class T>
struct RegisterTile {
  const T* a;
  std::int64_t a_row;
  const std::int64_t* a_term;
  std::int64_t a_step;
  const T* b;
  const std::int64_t* b_term;
  std::int64_t b_step;
  const std::int64_t* b_vector;
  Vectors<const T> from;
  Vectors<T> to;
  bool adds;
  const T *a_at, *b_at;  ///< the first terms of a call, in no list, as it waits for them; b's in the first vector
};

/// Operands of a tile whose terms are looked up in their lists. What is not lies next to each other, a's rows if
/// `kTurned` and its terms otherwise, or, as b's rows, a step apart.
enum Lookups { kNeither = 0, kA = 1, kB = 2, kBoth = 3, kTurned = 4 };

/// What is looked up of rows and terms that are so far apart; a step of 0 is none.
inline int lookups_of(std::int64_t a_row, std::int64_t a_step, std::int64_t b_step) {
  if (kVectorWidth == 64 && a_row == 1 && a_step > 1 && b_step != 0) return kTurned;
  return (a_step != 1 ? kA : kNeither) | (b_step == 0 ? kB : kNeither);
}

/// Whether vectors lie next to each other, where that matters.
template <class T>
bool are_beside(const std::int64_t* vector, int width) {
  for (int v = 1; kEvenTiles && v < width; ++v)
    if (vector[v] != vector[0] + v * kLanes<T>) return false;
  return true;
}

/// The vector V that begins at x.
template <class V, class T>
[[gnu::always_inline]] inline V read_vector(const T* x) {
  V v;
  std::memcpy(&v, x, sizeof v);
  return v;
}

/// to[r, :] = from[r, :] + sum[r, :] for R rows and W vectors V. There is one pointer for a row and a distance for each
/// vector, all found before the first row: few instructions, which the processor meets while it waits for the last
/// sums. `from` and `to` move behind the last row.
template <class T, int R, int W, class V>
[[gnu::always_inline]] inline void add_sums(const V (&sum)[R][W], const Vectors<const T>& x, const Vectors<T>& y,
                                            const T*& from, T*& to) {
  const std::int64_t from_row = x.row, to_row = y.row;
  std::int64_t from_vector[W], to_vector[W];
#pragma GCC unroll 8
  for (int v = 0; v < W; ++v) {
    from_vector[v] = x.vector[v], to_vector[v] = y.vector[v];
    asm("" : "+r"(from_vector[v]), "+r"(to_vector[v]));
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) {
      const V total = read_vector<V>(from + from_vector[v]) + sum[r][v];
      std::memcpy(to + to_vector[v], &total, sizeof total);
    }
    from += from_row, to += to_row;
    asm("" : "+r"(from), "+r"(to));
  }
}

/// Moves a pointer, and keeps the compiler from deriving it from another.
template <class T>
[[gnu::always_inline]] inline void step(const T*& x, std::int64_t distance) {
  x += distance;
  hide(x);
}

/// sum[v] += a b[v] for W vectors V.
template <class T, int W, class V>
[[gnu::always_inline]] inline void add_row(T a, const V (&b)[W], V (&sum)[W]) {
  const V left = a - V{};
#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)
  // With sixteen registers GCC would move the sums of several terms from one to another; both at once, as one addition
  // at a time leaves two moves a turn.
  if constexpr (W == 2 && sizeof(T) == sizeof(float)) {
    asm("vfmadd231ps %3, %2, %0\n\tvfmadd231ps %4, %2, %1"
        : "+x"(sum[0]), "+x"(sum[1])
        : "x"(left), "x"(b[0]), "x"(b[1]));
    return;
  } else if constexpr (W == 2) {
    asm("vfmadd231pd %3, %2, %0\n\tvfmadd231pd %4, %2, %1"
        : "+x"(sum[0]), "+x"(sum[1])
        : "x"(left), "x"(b[0]), "x"(b[1]));
    return;
  }
#endif
#if defined(__AVX512F__)
  if constexpr (W == 4 && sizeof(V) == 64 && sizeof(T) == sizeof(float)) {
    asm("vfmadd231ps %5, %4, %0\n\tvfmadd231ps %6, %4, %1\n\tvfmadd231ps %7, %4, %2\n\tvfmadd231ps %8, %4, %3"
        : "+v"(sum[0]), "+v"(sum[1]), "+v"(sum[2]), "+v"(sum[3])
        : "v"(left), "v"(b[0]), "v"(b[1]), "v"(b[2]), "v"(b[3]));
    return;
  } else if constexpr (W == 4 && sizeof(V) == 64) {
    asm("vfmadd231pd %5, %4, %0\n\tvfmadd231pd %6, %4, %1\n\tvfmadd231pd %7, %4, %2\n\tvfmadd231pd %8, %4, %3"
        : "+v"(sum[0]), "+v"(sum[1]), "+v"(sum[2]), "+v"(sum[3])
        : "v"(left), "v"(b[0]), "v"(b[1]), "v"(b[2]), "v"(b[3]));
    return;
  }
#endif
#pragma GCC unroll 8
  for (int v = 0; v < W; ++v) sum[v] = multiply_add(left, b[v], sum[v]);
}

/// Terms that a tile takes a turn, with less to count and fewer steps, where that saves a fiftieth: with wide vectors
/// when another thread has half of the core's instructions.
template <class T>
constexpr int terms_a_turn(int rows, int width, int lookups) {
  if (kVectorWidth < 32 || width != kMainWidth || rows < 5) return 1;
  const bool is_single = sizeof(T) == sizeof(float), is_tallest = rows == 6 && is_single;
  if (kVectorWidth == 32) return (lookups & kA) == 0 || is_tallest ? 4 : 2;
  if ((lookups & kBoth) != 0) return is_single ? 2 : 1;
  return is_tallest ? 4 : 2;
}

/// to[r, :] = from[r, :] + sum over the terms [first, end), one at least and a chain at most, of a[r, k] b[k, :] for R
/// rows and W vectors V, and so for the rows of `count` tiles below each other, one without `kRuns`.
template <class T, int R, int W, int lookups = kBoth, class V = Vector<T>>
void multiply_tiles(const RegisterTile<T>& t, std::int64_t first, std::int64_t end,
                    [[maybe_unused]] std::int64_t count) {
  constexpr bool lists_a = (lookups & kA) != 0, lists_b = (lookups & kB) != 0;
  constexpr bool is_even = kEvenTiles && lookups != kBoth, is_turned = lookups == kTurned;
  constexpr int turn = terms_a_turn<T>(R, W, lookups);
  const std::int64_t a_row = is_turned ? 1 : t.a_row, b_step = t.b_step;
  const T *a = lists_a ? t.a : t.a_at, *from = t.from.data;
  T* to = t.to.data;
  do {
    // Vectors are found from pointers to which listed terms are added, or by distances from one that steps.
    constexpr int kColumns = lists_b && !is_even ? W : 1;
    const T* column[kColumns];
    std::int64_t beside[W];
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v)
      if (v < kColumns) {
        column[v] = lists_b ? t.b + t.b_vector[v] : t.b_at;
        hide(column[v]);
      } else {
        beside[v] = is_even ? v * kLanes<T> : t.b_vector[v] - t.b_vector[0];
      }
    // So are rows, or the terms of a turn, several from a pointer.
    constexpr int kRows = lists_a ? kListedRows : kPointerRows, kPointers = ((is_turned ? turn : R) - 1) / kRows + 1;
    const std::int64_t apart = is_turned ? t.a_step : a_row;
    const T* row[kPointers];
#pragma GCC unroll 8
    for (int i = 0; i < kPointers; ++i) {
      row[i] = a + i * kRows * apart;
      hide(row[i]);
    }
    V sum[R][W];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) sum[r][v] = V{};
    std::int64_t down = apart * std::int64_t{sizeof(T)};  // in bytes, which processors add by themselves
    // Term k, so much later than the one that the rows' pointers are at.
    const auto add_term = [&](std::int64_t k, std::int64_t later) __attribute__((always_inline)) {
      const std::int64_t a_term = lists_a ? t.a_term[k] : later, b_term = lists_b ? t.b_term[k] : 0;
      const auto left = [&](std::int64_t r) __attribute__((always_inline)) {
        const std::int64_t i = is_turned ? later : r, beside_it = is_turned ? r : a_term;
        const char* const of_row = reinterpret_cast<const char*>(row[i / kRows]) + i % kRows * down;
        return reinterpret_cast<const T*>(of_row)[beside_it];
      };
      const auto right = [&](int v) __attribute__((always_inline)) {
        return read_vector<V>(kColumns > 1 ? column[v] + b_term : column[0] + b_term + (v > 0 ? beside[v] : 0));
      };
      if constexpr (kVectorWidth == 32 && R == 3 && W == 4) {
        // Sixteen registers hold the sums and a's elements, but only one of b's vectors.
        V a_row_term[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) a_row_term[r] = left(r) - V{};
#pragma GCC unroll 4
        for (int v = 0; v < W; ++v) {
          const V b_vector = right(v);
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) sum[r][v] = multiply_add(a_row_term[r], b_vector, sum[r][v]);
        }
        if constexpr (!lists_b) step(column[0], b_step);
        return;
      }
      V b_vectors[W];
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) b_vectors[v] = right(v);
      if constexpr (!lists_b) step(column[0], b_step);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) add_row(left(r), b_vectors, sum[r]);
    };
    const auto step_rows = [&](std::int64_t terms) __attribute__((always_inline)) {
      if constexpr (!lists_a)
#pragma GCC unroll 4
        for (int i = 0; i < kPointers; ++i) step(row[i], terms * (is_turned ? apart : 1));
      asm("" : "+r"(down));  // not to be added to what is later, which would take registers
    };
    std::int64_t k = first;
    if constexpr (turn == 1) {
      do add_term(k, 0), step_rows(1);
      while (++k < end);
    } else {
      for (; (end - k) % turn != 0; ++k) add_term(k, 0), step_rows(1);
      for (; k < end; k += turn) {
#pragma GCC unroll 4
        for (int i = 0; i < turn; ++i) add_term(k + i, i);
        step_rows(turn);
      }
    }
    if constexpr (!kRuns) from = t.from.data, to = t.to.data;  // no registers for them before
    add_sums<T>(sum, t.from, t.to, from, to);
    if constexpr (kRuns) step(a, R * a_row);
  } while (kRuns && --count > 0);
}

/// Whether the tallest tiles sum several chains in one call: those that large products of float32 are made of.
template <class T>
inline constexpr bool kJoinsChains = kRuns && sizeof(T) == sizeof(float);

/// y = y + sum for rows of `kMainWidth` vectors; `to` is y's first one.
template <class T>
[[gnu::noinline]] void add_rows(const T* sum, std::int64_t rows, T* to, const Vectors<T>& y) {
  for (std::int64_t r = 0; r < rows; ++r, to += y.row)
    for (int v = 0; v < kMainWidth; ++v, sum += kLanes<T>) store(load(to + y.vector[v]) + load(sum), to + y.vector[v]);
}

/// The same of tiles of `kMainWidth` vectors for more terms than a chain: large products consist of them. a's terms lie
/// next to each other, b's are a packed panel. The sums of chains are added to `from` one after the other.
template <class T, int R>
void multiply_chains(const RegisterTile<T>& t, std::int64_t first, std::int64_t end, std::int64_t count) {
  using V = Vector<T>;
  constexpr int W = kMainWidth, kTurn = 8;
  alignas(V) T total[R * W * kLanes<T>];
  const Vectors<T> joined{total, W * kLanes<T>, kSide<T>};
  std::int64_t down = t.a_row * std::int64_t{sizeof(T)};  // in bytes, which processors add by themselves
  const T *a = t.a_at, *from = t.from.data;
  T* to = t.to.data;
  do {
    const T *b = t.b_at, *row[(R - 1) / kPointerRows + 1];
#pragma GCC unroll 8
    for (int r = 0; r < R; r += kPointerRows) row[r / kPointerRows] = a + r * t.a_row, hide(row[r / kPointerRows]);
    // `total` has what `from` and all chains but the last add up to.
    Vectors<const T> x{from, t.from.row, t.from.vector};
    for (std::int64_t k = first; k < end;) {
      std::int64_t left = std::min(end - k, kChain<T>);
      k += left;
      V sum[R][W] = {};
      const auto add_term = [&](int later) __attribute__((always_inline)) {
        V b_vectors[W];
#pragma GCC unroll 8
        for (int v = 0; v < W; ++v) b_vectors[v] = read_vector<V>(b + later * kPanel<T> + v * kLanes<T>);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const char* const of_row = reinterpret_cast<const char*>(row[r / kPointerRows]) + r % kPointerRows * down;
          add_row(reinterpret_cast<const T*>(of_row)[later], b_vectors, sum[r]);
        }
      };
      const auto step_rows = [&](int terms) __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (const T*& pointer : row) step(pointer, terms);
        step(b, terms * kPanel<T>);
        asm("" : "+r"(down));  // not to be added to what is later, which would take registers
      };
      for (; left % kTurn != 0; --left) add_term(0), step_rows(1);
      for (; left > 0; left -= kTurn) {
#pragma GCC unroll 8
        for (int i = 0; i < kTurn; ++i) add_term(i);
        step_rows(kTurn);
      }
      const Vectors<T> y = k < end || t.adds ? joined : Vectors<T>{to, t.to.row, t.to.vector};
      const T* x_at = x.data;
      T* y_at = y.data;
      add_sums<T>(sum, x, y, x_at, y_at);
      x = {total, joined.row, joined.vector};
    }
    if (t.adds) add_rows<T>(total, R, to, t.to);
    step(a, R * t.a_row);
    from += R * t.from.row, to += R * t.to.row;
  } while (--count > 0);
}

template <class T>
using TileFunction = void (*)(const RegisterTile<T>&, std::int64_t, std::int64_t, std::int64_t);

/// Lanes of a half vector, for which processors that split vectors of 64 bytes need half the time; 0 where it saves
/// nothing.
template <class T>
inline constexpr int kHalfLanes = kVectorWidth == 64 && sizeof(T) == sizeof(float) ? kLanes<T> / 2 : 0;

/// The tiles of one height for 1, 2, 3, 4 and 8 vectors, as far as there are any, and, of some heights, for half a
/// vector (0).
template <class T>
struct TileWidths {
  TileFunction<T> of[5], half = nullptr;
  TileFunction<T> main[5] = {};      ///< for `kMainWidth` vectors and other `Lookups` than both, of some heights
  TileFunction<T> chains = nullptr;  ///< `multiply_chains`, of the tallest

  TileFunction<T> tile(int width, int lookups) const {
    if (width == kMainWidth && main[lookups] != nullptr) return main[lookups];
    return width == 0 ? half : of[width < 8 ? width - 1 : 4];
  }
};
template <class T, int R>
constexpr TileWidths<T> tile_widths() {
  TileWidths<T> tiles{{multiply_tiles<T, R, 1>}};
  if constexpr (R <= tallest<T>(2)) tiles.of[1] = multiply_tiles<T, R, 2>;
  if constexpr (R <= tallest<T>(3)) tiles.of[2] = multiply_tiles<T, R, 3>;
  if constexpr (R <= tallest<T>(4)) tiles.of[3] = multiply_tiles<T, R, 4>;
  if constexpr (R <= tallest<T>(8)) tiles.of[4] = multiply_tiles<T, R, 8>;
  if constexpr (kHalfLanes<T> != 0 && (R == 12 || R == 4 || R == 1))
    tiles.half = multiply_tiles<T, R, 1, kBoth, typename Several<T, kHalfLanes<T>>::type>;
  // The look-ups cost a twentieth.
  if constexpr (kVectorWidth >= 32 && (R == 5 || R == 6)) {
    constexpr bool single = sizeof(T) == sizeof(float);
    if constexpr (single || kVectorWidth == 32 || R == 6)
      tiles.main[kNeither] = multiply_tiles<T, R, kMainWidth, kNeither>;
    if constexpr (kVectorWidth == 64 && R == 6) tiles.main[kTurned] = multiply_tiles<T, R, kMainWidth, kTurned>;
    if constexpr (kJoinsChains<T> && R == kTileRows<T>) tiles.chains = multiply_chains<T, R>;
    if constexpr (single && (kVectorWidth == 32 || R == 6)) tiles.main[kB] = multiply_tiles<T, R, kMainWidth, kB>;
  }
  return tiles;
}
template <class T, int... I>
const TileWidths<T>* all_tiles(std::integer_sequence<int, I...>) {
  static constexpr TileWidths<T> kTiles[] = {tile_widths<T, I + 1>()...};
  return kTiles;
}
template <class T>
const TileWidths<T>* all_tiles() {
  return all_tiles<T>(std::make_integer_sequence<int, kTileRows<T>>());
}

/// Brings the lines of two matrices near, some at a time.
class Fetching {
 public:
  /// Two matrices, or none, in so many times.
  Fetching(const Ahead* x, std::int64_t times) : x_(x) {
    if (x != nullptr) share(times);
  }

  /// Whether there is nothing to bring near.
  bool is_idle() const { return share_ == 0; }
  /// Brings near what is due by so many more of the times.
  void some(std::int64_t times = 1) {
    if (share_ == 0) return;
    for (next_ -= times; next_ <= 0; next_ += every_) fetch();
  }

 private:
  TAPER_FOR_SIZE void share(std::int64_t times) {
    const std::int64_t all = lines(x_[0]) + lines(x_[1]);
    if (all == 0) return;
    const std::int64_t calls = std::clamp<std::int64_t>(all / kSome, 1, times);
    share_ = all / calls + 1;
    every_ = next_ = times / calls;
  }
  [[gnu::noinline]] void fetch() {
    for (std::int64_t left = share_; left > 0;) {
      while (row_ >= x_->rows) {
        if (second_) return;
        second_ = true, ++x_, row_ = 0;
      }
      const char* line = x_->data + row_ * x_->row + at_;
      const std::int64_t n = std::min(left, ceil_div(x_->columns - at_, kLine));
      for (const char* const end = line + n * kLine; line != end; line += kLine) __builtin_prefetch(line, 0, 2);
      at_ += n * kLine;
      left -= n;
      if (at_ >= x_->columns) at_ = 0, ++row_;
    }
  }

  static constexpr std::int64_t kSome = 8;  ///< lines that are worth a call
  static constexpr std::int64_t kLine = 64;
  static std::int64_t lines(const Ahead& x) { return x.rows * ceil_div(x.columns, kLine); }

  const Ahead* x_;
  std::int64_t share_ = 0, every_ = 1, next_ = 1, row_ = 0, at_ = 0;
  bool second_ = false;
};

}  // namespace taper::kernels
