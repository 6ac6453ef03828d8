#pragma once

#include <algorithm>
#include <cstdint>

#include "base/memory.hpp"

namespace taper::kernels {

/// Memory for `n` numbers, unset, of a kernel that needs more than a few: a block that its thread keeps for the next
/// call. Not a std::vector, nor `allocate`: inline functions, which the linker could take from the kernels for one
/// processor for the whole program.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t n)
      : bytes_(static_cast<std::size_t>(std::max<std::int64_t>(n, 1)) * sizeof(T)),
        data_(static_cast<T*>(detail::allocate_slowly(bytes_))) {}
  ~Array() { detail::deallocate_slowly(data_, bytes_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return data_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  std::size_t bytes_;
  T* data_;
};

}  // namespace taper::kernels
