#pragma once

#include <span>

#include "kernels/conv_turned.hpp"

/// Which taps positions find inside of the signal; for conv_turned.cpp alone. What lies outside is zero, and is not
/// multiplied.
namespace taper::kernels {

namespace {  // out of line, but no kernels to be chosen between

/// Positions [first, last) along a dimension, all of which find the taps [tap, last_tap) and no others.
struct Stretch {
  std::int64_t first, last, tap, last_tap;
};

/// The taps that position `i` finds; none if the last is not behind the first.
[[gnu::noinline]] Stretch found_by(const Axis& a, std::int64_t i, std::int64_t taps) {
  const std::int64_t element = i * a.stride + a.shift, beyond = element - (a.length - 1);
  const std::int64_t each = std::abs(a.shift_step);
  if (each == 0) return {i, i + 1, 0, element >= 0 && beyond <= 0 ? taps : 0};
  // How far the signal reaches from here in the direction of the taps, and where it begins.
  const std::int64_t left = a.shift_step > 0 ? -beyond : element, before = a.shift_step > 0 ? -element : beyond;
  return {i, i + 1, before > 0 ? ceil_div(before, each) : 0, left >= 0 ? std::min(taps, left / each + 1) : 0};
}

/// The stretches of a dimension, but for positions that find no tap.
struct Stretches {
  static constexpr int kMost = 32;
  int count = 0;
  Stretch at[kMost];

  Stretches() {}
  /// Lists them; false if there are too many.
  [[gnu::noinline]] bool list(const Axis& a, std::int64_t positions, std::int64_t taps) {
    const std::int64_t highest = a.shift + std::max<std::int64_t>((taps - 1) * a.shift_step, 0);
    for (std::int64_t i = 0; i < positions;) {
      Stretch s = found_by(a, i, taps);
      // From the first position that finds all on, most do.
      if (s.tap == 0 && s.last_tap == taps)
        s.last = std::clamp((a.length - 1 - highest) / a.stride + 1, s.last, positions);
      i = s.last;
      if (s.tap >= s.last_tap) continue;
      Stretch* const before = count > 0 ? at + count - 1 : nullptr;
      if (before != nullptr && before->last == s.first && before->tap == s.tap && before->last_tap == s.last_tap) {
        before->last = s.last;
        continue;
      }
      if (count == kMost) return false;
      at[count++] = s;
    }
    return true;
  }
  std::span<const Stretch> all() const { return {at, std::size_t(count)}; }
  /// The stretch that holds a position; null if that finds none.
  const Stretch* over(std::int64_t i) const {
    for (const Stretch& s : all())
      if (i >= s.first && i < s.last) return &s;
    return nullptr;
  }
};

/// The terms of positions that find the same taps: `a` tells how far their elements lie from the first, `b` where their
/// weights are.
struct FoundTerms {
  const std::int64_t *a, *b;
  std::int64_t count;
};

/// The terms of every kind of position of some sweeps: those of a step lie in a list of the first channels.
class Inside {
 public:
  Inside() {}
  /// Begins with one more sweep; false if it has too many kinds of positions.
  [[gnu::noinline]] bool begin(const Sweep& s) {
    for (int d = 0; d < 3; ++d)
      if (!along_[sweeps_][d].list(s.axis[d], s.positions[d], s.taps[d])) return false;
    ++sweeps_;
    return true;
  }
  /// How many taps all positions of a sample find together.
  [[gnu::noinline]] double found(int sweep) const {
    double all = 1;
    for (const Stretches& along : along_[sweep]) {
      double found = 0;
      for (const Stretch& s : along.all()) found += double(s.last - s.first) * double(s.last_tap - s.tap);
      all *= found;
    }
    return all;
  }
  /// How many kinds of positions a sweep has.
  int kinds_of(int sweep) const {
    const Stretches(&along)[3] = along_[sweep];
    return along[0].count * along[1].count * along[2].count;
  }
  /// Lists the terms of a sweep, of which up to `step` are taken at a time, for weights that lie `row` apart; false if
  /// there is no room for them.
  [[gnu::noinline]] bool list(int sweep, const Sweep& s, std::int64_t step, std::int64_t row) {
    const std::int64_t taps = s.tap_count(), channels = std::min(s.channels, (taps + step - 2) / taps + 1);
    first_kind_[sweep] = kinds_;
    for (const Stretch& d : along_[sweep][0].all())
      for (const Stretch& h : along_[sweep][1].all())
        for (const Stretch& w : along_[sweep][2].all()) {
          const Stretch found[3] = {d, h, w};
          std::int64_t most = channels;
          for (const Stretch& along : found) most *= along.last_tap - along.tap;
          if (kinds_ == kMostKinds || terms_ + most > kMostTerms || counts_ + taps + 1 > kMostCounts) return false;
          list_kind(s, channels, found, row);
        }
    return true;
  }
  /// How many kinds of positions there are.
  int kinds() const { return kinds_; }
  const Stretches& along(int sweep, int dimension) const { return along_[sweep][dimension]; }
  /// The kind of the positions in these stretches of a sweep.
  int kind(int sweep, const Stretch& d, const Stretch& h, const Stretch& w) const {
    const Stretches(&along)[3] = along_[sweep];
    const auto index = [&](int i, const Stretch& s) { return static_cast<int>(&s - along[i].at); };
    return first_kind_[sweep] + (index(0, d) * along[1].count + index(1, h)) * along[2].count + index(2, w);
  }
  /// Those of the terms from term `q` of a channel on that a kind of positions finds, up to term `last` of the channel
  /// `channels` further on.
  FoundTerms terms(int kind, std::int64_t q, std::int64_t channels, std::int64_t last) const {
    const Kind& of = kind_[kind];
    const std::int16_t* const before = count_ + of.first_count;
    const std::int64_t at = of.first_term + before[q];
    return {a_ + at, b_ + at, channels * of.each + before[last] - before[q]};
  }

 private:
  static constexpr int kMostKinds = 128;
  static constexpr std::int64_t kMostTerms = 8192, kMostCounts = 8192;

  /// Where the terms of a kind of positions begin, and its counts; the terms of each channel.
  struct Kind {
    std::int64_t first_term, first_count, each;
  };

  [[gnu::noinline]] void list_kind(const Sweep& s, std::int64_t channels, const Stretch (&found)[3], std::int64_t row) {
    const std::int64_t first_term = terms_;
    std::int64_t *a = a_ + first_term, *b = b_ + first_term, each = 0, weight = 0;
    std::int16_t* before = count_ + counts_;
    const auto is_found = [&](int d, std::int64_t tap) { return tap >= found[d].tap && tap < found[d].last_tap; };
    const auto distance = [&](int d, std::int64_t tap) { return (tap - found[d].tap) * s.axis[d].shift_step; };
    for (std::int64_t d = 0; d < s.taps[0]; ++d)
      for (std::int64_t h = 0; h < s.taps[1]; ++h) {
        const bool is_line = is_found(0, d) && is_found(1, h);
        const std::int64_t line = (distance(0, d) * s.axis[1].length + distance(1, h)) * s.signal_line;
        for (std::int64_t w = 0; w < s.taps[2]; ++w, weight += row) {
          *before++ = static_cast<std::int16_t>(each);
          if (is_line && is_found(2, w)) a[each] = line + distance(2, w), b[each++] = weight;
        }
      }
    *before = static_cast<std::int16_t>(each);
    // The other channels find the same: whole vectors, of which the last also writes what comes next.
    using Some = Vector<std::int64_t>;
    for (std::int64_t c = 1; c < channels; ++c) {
      const Some further = Some{} + c * s.signal_size, behind = Some{} + c * weight;
      for (std::int64_t i = 0, to = c * each; i < each; i += kLanes<std::int64_t>, to += kLanes<std::int64_t>) {
        store<std::int64_t>(load(a + i) + further, a + to);
        store<std::int64_t>(load(b + i) + behind, b + to);
      }
    }
    kind_[kinds_++] = {first_term, counts_, each};
    terms_ += channels * each, counts_ += s.tap_count() + 1;
  }

  Stretches along_[kMostTurns][3];
  int sweeps_ = 0, kinds_ = 0, first_kind_[kMostTurns];
  std::int64_t terms_ = 0, counts_ = 0;
  Kind kind_[kMostKinds];
  std::int64_t a_[kMostTerms + kLanes<std::int64_t>], b_[kMostTerms + kLanes<std::int64_t>];
  std::int16_t count_[kMostCounts];  ///< of each kind: the terms of a channel before each tap, and of all taps
};

}  // namespace

}  // namespace taper::kernels
