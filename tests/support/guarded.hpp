#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "support/catch.hpp"

namespace taper::test {

/// Elements between pages that end the program when they are read or written: right behind the first, or right before
/// the last.
template <class T>
class Guarded {
 public:
  Guarded(const std::vector<T>& values, bool at_end) : bytes_(values.size() * sizeof(T)) {
    pages_ = static_cast<char*>(mmap(nullptr, space(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(pages_ != MAP_FAILED);
    REQUIRE(mprotect(pages_ + kPage, space() - 2 * kPage, PROT_READ | PROT_WRITE) == 0);
    data = reinterpret_cast<T*>(at_end ? pages_ + space() - kPage - bytes_ : pages_ + kPage);
    std::copy(values.begin(), values.end(), data);
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { munmap(pages_, space()); }

  T* data;

 private:
  static constexpr std::size_t kPage = 1 << 12;
  std::size_t space() const { return (bytes_ + kPage - 1) / kPage * kPage + 2 * kPage; }

  std::size_t bytes_;
  char* pages_;
};

}  // namespace taper::test
