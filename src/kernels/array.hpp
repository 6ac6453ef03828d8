#pragma once

#include <cstdint>

namespace taper::kernels {

/// Memory for `n` numbers, unset, of a kernel that needs more than a few. Not a std::vector, whose functions the linker
/// could take from the kernels for one processor for the whole program.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t n) : data_(new T[static_cast<std::size_t>(n)]) {}
  ~Array() { delete[] data_; }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return data_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  T* data_;
};

}  // namespace taper::kernels
