#pragma once

#include <cstdint>
#include <cstring>

#include "base/memory_ahead.hpp"
#include "kernels/vectors.hpp"

/// Before a loop: its turns do not depend on each other, whatever its pointers look like to the compiler. Clang checks
/// for overlap at run time instead.
#if defined(__GNUC__) && !defined(__clang__)
#define TAPER_INDEPENDENT_TURNS _Pragma("GCC ivdep")
#else
#define TAPER_INDEPENDENT_TURNS
#endif

/// A function that runs once for a whole layer, and copies and clears next to nothing: instructions that go byte by
/// byte would do that. `cold` would say more: that its callers are seldom reached either, whose loops then are no
/// vectors.
#if defined(__GNUC__) && !defined(__clang__)
#define TAPER_FOR_SIZE [[gnu::noinline, gnu::optimize("Os")]]
#else
#define TAPER_FOR_SIZE [[gnu::noinline]]
#endif

namespace taper::kernels {

/// y_i = 0 for i < n; out of line, as there are many calls.
template <class T>
[[gnu::noinline]] static void clear(T* y, std::int64_t n) {
  if (n > 0) std::memset(y, 0, static_cast<std::size_t>(n) * sizeof(T));
}

/// Keeps the compiler from deriving one pointer from another, for which it would take more registers or instructions.
template <class T>
inline void hide(const T*& x) {
  asm("" : "+r"(x));
}

/// Bytes that memory is asked for at a time.
inline constexpr int kLine = 64;

/// Asks for the memory that lies `bytes` behind x, or beyond all memory.
template <class T>
[[gnu::always_inline]] inline void fetch_line(const T* x, std::uintptr_t bytes) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(x) + bytes));
}

/// Asks for the memory `ahead` bytes behind x in its order, as much as n elements take.
template <class T>
[[gnu::always_inline]] inline void fetch_run(const T* x, std::int64_t n, std::uintptr_t ahead) {
  for (std::int64_t i = 0; i < n; i += kLine / sizeof(T)) fetch_line(x + i, ahead);
}

/// What loops will read or fill a while later: it is asked for in its order, which they hide from the processor by
/// going down columns, and in a core's second cache, where it stays until then. It may lie beyond all memory.
class Next {
 public:
  /// From `n` elements behind x on.
  template <class T>
  Next(const T* x, std::int64_t n)
      : at_(reinterpret_cast<std::uintptr_t>(x) + static_cast<std::uintptr_t>(n) * sizeof(T)) {}

  [[gnu::always_inline]] void fetch(std::int64_t bytes) {
    const std::uintptr_t end = at_ + static_cast<std::uintptr_t>(bytes);
    for (; at_ < end; at_ += kLine) __builtin_prefetch(reinterpret_cast<const void*>(at_), 0, 2);
    at_ = end;
  }
  void skip(std::int64_t bytes) { at_ += static_cast<std::uintptr_t>(bytes); }

 private:
  std::uintptr_t at_;
};

/// Where far memory is read in turn.
inline constexpr std::int64_t kPlaces = 4;

/// What loops will read a while later in kPlaces places in turn: two lines of it are asked for at a time. It may lie
/// beyond all memory.
class NextPlaces {
 public:
  /// From `n` elements behind x on; each place is `apart` elements behind the one before it.
  template <class T>
  NextPlaces(const T* x, std::int64_t n, std::int64_t apart)
      : at_(reinterpret_cast<std::uintptr_t>(x) + static_cast<std::uintptr_t>(n) * sizeof(T)),
        apart_(static_cast<std::uintptr_t>(apart) * sizeof(T)),
        further_(2 * apart_) {}

  [[gnu::always_inline]] void fetch_two_lines() {
    __builtin_prefetch(reinterpret_cast<const void*>(at_), 0, 2);
    __builtin_prefetch(reinterpret_cast<const void*>(at_ + apart_), 0, 2);
    at_ += further_;
    further_ = kLine - further_;
  }

 private:
  std::uintptr_t at_, apart_, further_;
};

/// Calls `turn(p, run, count, next)` for kPlaces * `part` runs of n elements each, from x on, in kPlaces places in
/// turn: for `count` runs from number `run` on in place p, at most `some`. `next` is what to ask for meanwhile: a share
/// of what lies `ahead` elements behind the first run of all places.
template <class T, class Turn>
[[gnu::always_inline]] inline void for_places(const T* x, std::int64_t n, std::int64_t part, std::int64_t some,
                                              std::int64_t ahead, const Turn& turn) {
  for (std::int64_t i = 0; i < part; i += some)
    for (std::int64_t p = 0; p < kPlaces; ++p) {
      const std::int64_t count = some < part - i ? some : part - i;
      turn(p, p * part + i, count, NextPlaces(x + i * n, ahead + p * count * n / kPlaces, part * n));
    }
}

/// How many elements ahead runs are asked for best in each place.
template <class T>
inline constexpr std::int64_t kPlaceAhead = 2048 / sizeof(T);

/// Bytes that caches hardly hold: of what is read, or of results; and of both together where memory to be filled is
/// asked for, as stores wait for it less than loads do.
inline constexpr std::int64_t kFarRead = std::int64_t{1} << (kVectorWidth == 32 ? 23 : 24),
                              kFarFilled = std::int64_t{3} << 23;

/// Whether caches hardly hold so many bytes: the same for all sets of instructions, where it decides the order of sums.
inline bool is_far(double bytes) { return bytes >= double(1 << 24); }

using detail::kPage;
using detail::memory_ahead;
using detail::row_ahead;

/// How many bytes in front of what it reads a loop asks for memory; 0: not at all. All processors gain by it where
/// several rows are read together that are `row` bytes long, if that is much.
inline std::uintptr_t far_ahead(std::int64_t row = 0) { return row >= 512 ? memory_ahead : row_ahead; }

/// Whether a core's own caches hold so many bytes. Nothing is asked for ahead then: what lies behind them may be
/// nobody's memory yet, for which the processor looks as long as it takes to read fifty lines that are near.
inline bool is_near(double bytes) { return bytes < double(1 << 20); }

/// `far_ahead` for loops that read so many bytes in all; 0 if these are near. The baseline is kept small.
inline std::uintptr_t far_ahead_of(double bytes) { return kVectorWidth == 16 || is_near(bytes) ? 0 : far_ahead(); }

/// The same for loops that go through a few rows at once, and ask for a line at least.
inline std::uintptr_t line_ahead() { return row_ahead > 0 ? memory_ahead : kLine; }

/// The same for what a loop goes through beside others, in order: less helps most processors no more than their own
/// fetching.
inline std::uintptr_t beside_ahead() { return memory_ahead > kPage ? memory_ahead : 0; }

/// Whether so many bytes are read faster in kPlaces places in turn; other sets of instructions are kept small.
inline bool reads_apart(double bytes) { return kVectorWidth == 32 && bytes >= static_cast<double>(detail::apart_from); }

}  // namespace taper::kernels
