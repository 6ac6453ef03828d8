#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#pragma GCC visibility push(default)

namespace taper {

/// The extents of a tensor, at most `kMaxRank` of them, and their product. A value.
///
/// Construction refuses negative extents, a rank over the limit, and extents whose product (zeros
/// left out) does not fit 63 bits, so a `Shape` that exists can always be multiplied out.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  /// Errors (as of the next two): `ErrorKind::shape` as described above.
  Shape(std::initializer_list<std::int64_t> extents) : Shape(extents.begin(), extents.size()) {}
  Shape(const std::int64_t* extents, std::size_t rank);
  /// From a vector, an array or a span. A template that does not look at shapes: a plain `std::span` parameter would
  /// make every copy of a shape ask whether it is a range, which costs each includer 40 ms.
  template <class Extents, class = std::enable_if_t<!std::is_same_v<Extents, Shape>>>
  explicit Shape(const Extents& extents) : Shape(extents.data(), extents.size()) {}

  int rank() const noexcept { return rank_; }
  std::int64_t numel() const noexcept { return numel_; }

  /// Extent of dimension `i`, 0 <= i < rank().
  std::int64_t operator[](int i) const noexcept { return extents_[i]; }

  /// Extent counted from the back: `back(0)` is the last.
  std::int64_t back(int i = 0) const noexcept { return extents_[rank_ - 1 - i]; }

  const std::int64_t* begin() const noexcept { return extents_; }
  const std::int64_t* end() const noexcept { return extents_ + rank_; }

  /// The dimensions `[first, last)` as a shape of their own.
  Shape slice(int first, int last) const;
  /// This shape followed by `tail`.
  Shape concat(const Shape& tail) const;
  /// This shape with dimension `i` replaced.
  Shape with(int i, std::int64_t extent) const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.extents_[i] != b.extents_[i]) return false;
    return true;
  }

 private:
  std::int64_t extents_[kMaxRank] = {};
  std::int64_t numel_ = 1;
  int rank_ = 0;
};

/// "[2, 3, 5]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

/// Turns a dimension counted from the back (-1 is the last) into one counted from the front.
/// Errors: `ErrorKind::shape`, `where: dimension out of range: expected -r to r-1, got d`.
int normalize_dim(const char* where, std::int64_t dim, int rank);

}  // namespace taper

#pragma GCC visibility pop
