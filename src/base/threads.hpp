#pragma once

#include <cstdint>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace taper::threads {

/// How many threads the library may use at most; `taper::set_num_threads` sets it.
int max_threads() noexcept;
void set_max_threads(int n) noexcept;

/// Work, in elementary operations, that never pays for a second thread.
inline constexpr std::int64_t kSerialWork = 8192;

/// A share of the library's threads, held while a kernel runs. All kernels that run at a time share one budget, so a
/// program whose own threads call the library is not slowed by more threads than it allows.
class Team {
 public:
  /// As many threads as `work` elementary operations in `units` pieces are worth: each must have more to do than
  /// starting a team costs, which is measured on this machine.
  Team(std::int64_t units, double work) noexcept;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

 private:
  int size_;
};

/// How a thread treats denormal numbers and rounds: the calling thread's way is that of its team.
class FloatMode {
 public:
  static FloatMode current() noexcept {
#ifdef __SSE__
    return FloatMode{_mm_getcsr() & kControl};
#else
    return FloatMode{0};
#endif
  }
  /// Makes it this thread's.
  void set() const noexcept {
#ifdef __SSE__
    const unsigned state = _mm_getcsr();
    if ((state & kControl) != bits_) _mm_setcsr((state & ~kControl) | bits_);
#endif
  }
  FloatMode with_flushed_denormals() const noexcept { return FloatMode{bits_ | kFlush}; }
  FloatMode with_denormals() const noexcept { return FloatMode{bits_ & ~kFlush}; }
  bool flushes_denormals() const noexcept { return (bits_ & kFlush) == kFlush; }

 private:
  static constexpr unsigned kControl = 0xffc0, kFlush = 0x8040;  // all but the flags; FTZ and DAZ
  explicit FloatMode(unsigned bits) : bits_(bits) {}
  unsigned bits_;
};

/// While it lives and is `on`, denormal numbers count as 0 in what this thread and its teams compute.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool on) noexcept {
    if (on) before_.with_flushed_denormals().set();
  }
  ~FlushDenormals() { before_.set(); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  FloatMode before_ = FloatMode::current();
};

}  // namespace taper::threads
