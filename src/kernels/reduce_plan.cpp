#include "kernels/reduce_plan.hpp"

namespace taper::kernels {

namespace {

using Dim = ReducePlan::Dim;

/// Whether `outer` continues `inner`, so that the two are one dimension.
bool continues(const Dim& outer, const Dim& inner) {
  for (int k = 0; k < ReducePlan::kArrays; ++k)
    if (outer.stride[k] != inner.stride[k] * inner.extent) return false;
  return true;
}

}  // namespace

ReducePlan reduce_plan(std::span<const Dim> dims, std::uint32_t is_reduced) {
  ReducePlan plan;
  Dim merged[Shape::kMaxRank];
  bool reduced[Shape::kMaxRank] = {};
  int n = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const bool r = (is_reduced >> d & 1u) != 0;
    (r ? plan.count : plan.outputs) *= dims[d].extent;
    if (dims[d].extent == 1) continue;
    if (n > 0 && reduced[n - 1] == r && continues(merged[n - 1], dims[d])) {
      const std::int64_t extent = merged[n - 1].extent * dims[d].extent;
      merged[n - 1] = dims[d];
      merged[n - 1].extent = extent;
    } else {
      merged[n] = dims[d];
      reduced[n++] = r;
    }
  }
  if (n > 0 && !reduced[n - 1]) plan.columns = merged[--n];
  if (n > 0 && reduced[n - 1]) plan.rows = merged[--n];
  for (int d = 0; d < n; ++d)
    (reduced[d] ? plan.reduced[plan.reduced_rank++] : plan.kept[plan.kept_rank++]) = merged[d];
  return plan;
}

ReducePlan reduce_plan(std::span<const std::int64_t> shape, std::uint32_t dims) {
  Dim all[Shape::kMaxRank];
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    all[d] = {shape[d], {stride, 0, 0}};
    stride *= shape[d];
  }
  return reduce_plan(std::span<const Dim>(all, shape.size()), dims);
}

}  // namespace taper::kernels
