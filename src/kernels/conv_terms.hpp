#pragma once

#include <utility>

#include "kernels/conv_slab.hpp"

namespace taper::kernels {

namespace {  // out of line, but no kernels to be chosen between

/// Where the terms of one block lie.
class TermPlaces {
 public:
  std::int64_t a[kDeepBlock], b[kDeepBlock];
  std::int64_t a_step, b_step;  ///< as in `ListedOperands`

  /// Begins with a sweep. `slab` is null for packed operands.
  void begin(const Sweep& s, const Slab* slab) {
    s_ = &s, slab_ = slab, taps_ = s.tap_count();
    listed_a_ = listed_b_ = {};
    for (bool& is_known : is_known_) is_known = false;
  }

  /// Lists where the weights of the terms [k, k + n) lie.
  void list_a(std::int64_t k, std::int64_t n) { list({k, n, kWeight}, listed_a_, a, a_step, 0, s_->w_channel); }
  /// Lists where the terms [k, k + n) find their elements: in the slab of the channels from `k / taps` on, or in a line
  /// of the signal.
  void list_b(std::int64_t k, std::int64_t n, bool in_signal) {
    if (in_signal)
      list({k, n, kSignal}, listed_b_, b, b_step, 0, s_->signal_size);
    else
      list({k, n, kSlab}, listed_b_, b, b_step, k / taps_, slab_->volume);
  }

 private:
  enum Kind { kWeight, kSlab, kSignal };
  struct Listed {
    std::int64_t k = 0, n = 0;  ///< no terms at first
    Kind kind = kWeight;

    bool operator==(const Listed&) const = default;
  };

  /// Where a tap's weight or element lies.
  std::int64_t of_tap(Kind kind, const Place& tap) const {
    return kind == kWeight ? s_->weight(tap)
           : kind == kSlab ? slab_->element(*s_, tap)
                           : s_->axis[2].shift + tap.at[2] * s_->axis[2].shift_step;
  }
  /// to[q] = (channel - first) * stride + what the tap adds, unless it is `listed` already, as for most blocks.
  [[gnu::noinline]] void list(const Listed& terms, Listed& listed, std::int64_t* to, std::int64_t& each,
                              std::int64_t first, std::int64_t stride) {
    if (terms == listed) return;
    listed = terms;
    const auto [k, n, kind] = terms;
    std::int64_t* const table = of_tap_[kind];
    if (!std::exchange(is_known_[kind], true)) {
      Place p{};
      for (std::int64_t t = 0; t < std::min(taps_, kDeepBlock); ++t, step(p, s_->taps)) table[t] = of_tap(kind, p);
    }
    std::int64_t c = k / taps_, t = k % taps_;
    for (std::int64_t q = 0; q < n; ++c, t = 0) {
      const std::int64_t end = std::min(n, q + taps_ - t), base = (c - first) * stride;
      if (taps_ <= kDeepBlock) {
        for (; q < end; ++q, ++t) to[q] = base + table[t];
      } else {
        for (Place p = locate(t, s_->taps); q < end; ++q, step(p, s_->taps)) to[q] = base + of_tap(kind, p);
      }
    }
    each = n > 1 ? to[1] - to[0] : 0;
    for (std::int64_t q = 2; q < n; ++q)
      if (to[q] - to[q - 1] != each) each = 0;
  }

  const Sweep* s_;
  const Slab* slab_;
  Listed listed_a_, listed_b_;
  std::int64_t taps_, of_tap_[3][kDeepBlock];  ///< of the first taps, once they are known
  bool is_known_[3];
};

/// The lists that the operands of one block point to.
template <class T>
class Terms : public TermPlaces {
 public:
  std::int64_t vector[kSlabColumns / kLanes<T>], result[kSlabColumns / kLanes<T>];
  int count[kSlabColumns / kLanes<T>];

  /// Lists the results of `lines` lines of `width` positions, which have vectors of their own, `line` apart. Where they
  /// overlap, the last vector of a line ends where the line does.
  void list_results(std::int64_t lines, std::int64_t width, std::int64_t line, bool overlap = false) {
    std::int64_t v = 0;
    for (std::int64_t h = 0; h < lines; ++h)
      for (std::int64_t l = 0; l < width; l += kLanes<T>, ++v) {
        result[v] = h * line + (overlap ? std::min(l, width - kLanes<T>) : l);
        count[v] = overlap ? kLanes<T> : static_cast<int>(std::min<std::int64_t>(kLanes<T>, width - l));
      }
  }
};

}  // namespace

}  // namespace taper::kernels
