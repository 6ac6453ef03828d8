#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/parallel.hpp"
#include "taper/shape.hpp"

namespace taper::kernels {

/// How one or more arrays are read to reduce some dimensions and keep the others.
///
/// Neighbouring dimensions of one kind are merged. What remains is, from outside to inside: `kept` outer dimensions
/// and `reduced` outer dimensions in any order, `rows` (the innermost reduced dimension) and `columns` (the kept
/// dimension inside it, extent 1 when the last dimension is reduced). A plain value; making it allocates nothing.
struct ReducePlan {
  static constexpr int kArrays = 3;
  struct Dim {
    std::int64_t extent;
    std::int64_t stride[kArrays];  ///< in elements; 0 repeats
  };
  Dim kept[Shape::kMaxRank], reduced[Shape::kMaxRank];  ///< set up to their ranks
  int kept_rank = 0, reduced_rank = 0;
  Dim rows = {1, {0, 0, 0}}, columns = {1, {0, 0, 0}};
  std::int64_t outputs = 1;  ///< kept elements
  std::int64_t count = 1;    ///< elements reduced into one of them
};

/// Merges dimensions, given from the outermost to the innermost, into a plan. `is_reduced` has a bit for each.
ReducePlan reduce_plan(std::span<const ReducePlan::Dim> dims, std::uint32_t is_reduced);

/// The plan that reduces the dimensions of a row-major `shape` whose bits are set in `dims`.
ReducePlan reduce_plan(std::span<const std::int64_t> shape, std::uint32_t dims);

/// Outputs are worked on in groups of at most this many neighbours.
inline constexpr std::int64_t kReduceColumns = 64;

/// A position in each array of a plan.
struct Offsets {
  std::int64_t at[ReducePlan::kArrays] = {0, 0, 0};
};

/// The offsets of element `index`, counted row-major over the first `rank` of `dims`.
inline Offsets offsets_of(const ReducePlan::Dim* dims, int rank, std::int64_t index) {
  Offsets at;
  for (int d = rank - 1; d >= 0; --d) {
    // The outermost dimension is what is left: no division.
    const std::int64_t quotient = d == 0 ? 0 : index / dims[d].extent, i = index - quotient * dims[d].extent;
    index = quotient;
    for (int k = 0; k < ReducePlan::kArrays; ++k) at.at[k] += i * dims[d].stride[k];
  }
  return at;
}

/// Calls `body(output, width, offsets)` for groups of `width` neighbouring outputs from number `output` on, `offsets`
/// being where the first element of the first of them lies; in parallel, in groups fixed by the plan.
template <class Body>
void for_each_group(const ReducePlan& plan, std::int64_t cost, const Body& body) {
  if (plan.outputs == 0) return;
  const std::int64_t groups = (plan.columns.extent + kReduceColumns - 1) / kReduceColumns;
  const std::int64_t work =
      std::max<std::int64_t>(plan.count, 1) * std::min(plan.columns.extent, kReduceColumns) * cost;
  parallel_for(plan.outputs / plan.columns.extent * groups, work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t outer = groups == 1 ? unit : unit / groups, column = (unit - outer * groups) * kReduceColumns;
      Offsets at = offsets_of(plan.kept, plan.kept_rank, outer);
      for (int k = 0; k < ReducePlan::kArrays; ++k) at.at[k] += column * plan.columns.stride[k];
      body(outer * plan.columns.extent + column, std::min(plan.columns.extent - column, kReduceColumns), at);
    }
  });
}

/// Calls `body(offsets, index)` for each block of `plan.rows` that is reduced into the group at `start`, in order;
/// `index` counts the reduced elements before it.
template <class Body>
void for_each_block(const ReducePlan& plan, const Offsets& start, const Body& body) {
  if (plan.count == 0) return;
  std::int64_t index[Shape::kMaxRank] = {};
  Offsets at = start;
  for (std::int64_t done = 0; done < plan.count; done += plan.rows.extent) {
    body(at, done);
    for (int d = plan.reduced_rank - 1; d >= 0; --d) {
      const ReducePlan::Dim& dim = plan.reduced[d];
      const bool wraps = ++index[d] == dim.extent;
      const std::int64_t step = wraps ? 1 - dim.extent : 1;
      for (int k = 0; k < ReducePlan::kArrays; ++k) at.at[k] += step * dim.stride[k];
      if (!wraps) break;
      index[d] = 0;
    }
  }
}

}  // namespace taper::kernels
