#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "core/memory.hpp"

namespace taper::detail {

/// `n` values for one call of an op, to be written before they are read: on the stack for the usual few operands, in a
/// block of memory for `cat` and its like.
template <class T>
class CallList {
 public:
  explicit CallList(std::size_t n) : data_(reinterpret_cast<T*>(few_)), size_(n) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (n > kFew) [[unlikely]]
      data_ = static_cast<T*>(allocate(n * sizeof(T)));
  }
  ~CallList() {
    if (size_ > kFew) [[unlikely]]
      deallocate(data_, size_ * sizeof(T));
  }
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;

  /// Writes element `i`, which was not written before.
  void set(std::size_t i, const T& value) { new (data_ + i) T(value); }
  T& operator[](std::size_t i) { return data_[i]; }
  std::span<const T> all() const { return {data_, size_}; }

 private:
  static constexpr std::size_t kFew = 6;
  alignas(T) std::byte few_[kFew * sizeof(T)];
  T* data_;
  std::size_t size_;
};

}  // namespace taper::detail
