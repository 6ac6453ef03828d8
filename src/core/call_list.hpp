#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "base/memory.hpp"

namespace taper::detail {

/// Calls `f(i)` for i < n: one after the other where the compiler knows that there are two, else in a loop.
template <class F>
[[gnu::always_inline]] inline void for_each_index(std::size_t n, const F& f) {
  if (__builtin_constant_p(n) && n == 2) {
    f(0);
    f(1);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) f(i);
}

/// Room on the stack for the usual few operands of a call. Apart from the list, so that the list stays in registers.
template <class T>
struct Few {
  static constexpr std::size_t kFew = 6;
  alignas(T) std::byte memory[kFew * sizeof(T)];
};

/// `n` values for one call of an op, to be written before they are read: in `few` where they fit, else, as for `cat`
/// and its like, in a block of memory.
template <class T>
class CallList {
 public:
  CallList(std::size_t n, Few<T>& few) : data_(reinterpret_cast<T*>(few.memory)), size_(n) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (n > Few<T>::kFew) [[unlikely]]
      data_ = static_cast<T*>(allocate(n * sizeof(T)));
  }
  [[gnu::always_inline]] ~CallList() {
    if (size_ > Few<T>::kFew) [[unlikely]]
      deallocate(data_, size_ * sizeof(T));
  }
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;

  /// Writes element `i`, which was not written before.
  void set(std::size_t i, const T& value) { new (data_ + i) T(value); }
  T* data() { return data_; }
  std::span<const T> all() const { return {data_, size_}; }

 private:
  T* data_;
  std::size_t size_;
};

}  // namespace taper::detail
