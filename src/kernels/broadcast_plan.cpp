#include <algorithm>

#include "kernels/broadcast.hpp"

namespace taper::kernels {

namespace {

using Extents = std::span<const std::int64_t>;

/// Element strides of a row-major `operand` read as `out`: 0 where it repeats.
void strides_in(Extents out, Extents operand, std::int64_t* strides) {
  const std::size_t missing = out.size() - operand.size();
  std::int64_t stride = 1;
  for (std::size_t d = out.size(); d-- > 0;) {
    const std::int64_t extent = d < missing ? 1 : operand[d - missing];
    strides[d] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

std::int64_t product(Extents extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  return n;
}

}  // namespace

std::optional<Shape> broadcast_shape(Extents a, Extents b) {
  std::int64_t out[Shape::kMaxRank];
  const std::size_t rank = std::max(a.size(), b.size());
  for (std::size_t back = 0; back < rank; ++back) {
    const std::int64_t ea = back < a.size() ? a[a.size() - 1 - back] : 1;
    const std::int64_t eb = back < b.size() ? b[b.size() - 1 - back] : 1;
    if (ea != eb && ea != 1 && eb != 1) return std::nullopt;
    out[rank - 1 - back] = ea == 1 ? eb : ea;
  }
  return Shape(Extents(out, rank));
}

BroadcastPlan broadcast_plan(Extents out, std::initializer_list<Extents> operands) {
  BroadcastPlan plan = same_shape_plan(product(out));
  if (std::all_of(operands.begin(), operands.end(),
                  [&](Extents o) { return std::equal(o.begin(), o.end(), out.begin(), out.end()); }))
    return plan;

  const int count = static_cast<int>(operands.size());
  std::int64_t strides[BroadcastPlan::kOperands][Shape::kMaxRank] = {};
  for (int k = 0; k < count; ++k) strides_in(out, operands.begin()[k], strides[k]);

  // Merged dimensions, the innermost first.
  int n = 0;
  std::int64_t extent[Shape::kMaxRank], stride[BroadcastPlan::kOperands][Shape::kMaxRank];
  for (std::size_t d = out.size(); d-- > 0;) {
    if (out[d] == 1) continue;
    bool merges = n > 0;
    for (int k = 0; k < count && merges; ++k) merges = strides[k][d] == stride[k][n - 1] * extent[n - 1];
    if (merges) {
      extent[n - 1] *= out[d];
      continue;
    }
    extent[n] = out[d];
    for (int k = 0; k < BroadcastPlan::kOperands; ++k) stride[k][n] = strides[k][d];
    ++n;
  }
  if (n == 0) return plan;
  plan.inner = extent[0];
  plan.outer_rank = n - 1;
  for (int k = 0; k < count; ++k) plan.inner_stride[k] = static_cast<int>(stride[k][0]);
  for (int d = 1; d < n; ++d) {
    plan.extent[n - 1 - d] = extent[d];
    for (int k = 0; k < BroadcastPlan::kOperands; ++k) plan.stride[k][n - 1 - d] = stride[k][d];
  }
  return plan;
}

GradPlan grad_plan(Extents out, Extents a, Extents b, int operand) {
  const Extents target = operand == 0 ? a : b;
  GradPlan plan;
  plan.repeated = product(target) != product(out);
  if (!plan.repeated) {
    plan.elementwise = broadcast_plan(out, {out, a, b});
    return plan;
  }
  std::int64_t strides[ReducePlan::kArrays][Shape::kMaxRank];
  strides_in(out, out, strides[0]);
  strides_in(out, a, strides[1]);
  strides_in(out, b, strides[2]);
  ReducePlan::Dim dims[Shape::kMaxRank];
  std::uint32_t reduced = 0;
  for (std::size_t d = 0; d < out.size(); ++d) {
    dims[d] = {out[d], {strides[0][d], strides[1][d], strides[2][d]}};
    if (strides[1 + operand][d] == 0 && out[d] != 1) reduced |= 1u << d;
  }
  plan.reduce = reduce_plan(std::span<const ReducePlan::Dim>(dims, out.size()), reduced);
  return plan;
}

}  // namespace taper::kernels
