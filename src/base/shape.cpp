#include "taper/shape.hpp"

#include "base/checked.hpp"
#include "base/fail.hpp"

namespace taper {

Shape::Shape(const std::int64_t* extents, std::size_t rank) {
  if (rank > std::size_t(kMaxRank)) [[unlikely]]
    fail(ErrorKind::shape, "shape: too many dimensions: expected at most ", kMaxRank, ", got ", rank);
  bool empty = false;
  std::int64_t numel = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t extent = extents[i];
    if (extent < 0) [[unlikely]]
      fail(ErrorKind::shape, "shape: extents must not be negative: expected >= 0, got ", extent, " in dimension ", i);
    extents_[i] = extent;
    empty |= extent == 0;
    if (extent != 0 && __builtin_mul_overflow(numel, extent, &numel)) [[unlikely]]
      fail(ErrorKind::shape, "shape: number of elements overflows 64 bits: expected a product below 2^63, got ", extent,
           " in dimension ", i);
  }
  numel_ = empty ? 0 : numel;
  rank_ = int(rank);
}

Shape Shape::slice(int first, int last) const { return Shape(extents_ + first, std::size_t(last - first)); }

Shape Shape::concat(const Shape& tail) const {
  std::int64_t joined[2 * kMaxRank];
  int n = 0;
  for (const auto extent : *this) joined[n++] = extent;
  for (const auto extent : tail) joined[n++] = extent;
  return Shape(joined, std::size_t(n));
}

Shape Shape::with(int i, std::int64_t extent) const {
  std::int64_t changed[kMaxRank];
  for (int d = 0; d < rank_; ++d) changed[d] = d == i ? extent : extents_[d];
  return Shape(changed, std::size_t(rank_));
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) out += ", ";
    out += cat(shape[i]);
  }
  return out + "]";
}

int normalize_dim(const char* where, std::int64_t dim, int rank) {
  const int range = rank == 0 ? 1 : rank;  // a scalar answers to dimensions 0 and -1, as in PyTorch
  if (dim < -range || dim >= range) [[unlikely]]
    fail(ErrorKind::shape, where, ": dimension out of range: expected ", -range, " to ", range - 1, ", got ", dim);
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

}  // namespace taper
