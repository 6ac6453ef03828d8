#include "kernels/reduce_plan.hpp"

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"

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

TAPER_FOR_SIZE ReducePlan reduce_plan(std::span<const Dim> dims, std::uint32_t is_reduced) {
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
  for (int d = 0; d < n; ++d)
    (reduced[d] ? plan.reduced[plan.reduced_rank++] : plan.kept[plan.kept_rank++]) = merged[d];
  if (plan.reduced_rank > 0) plan.rows = plan.reduced[--plan.reduced_rank];
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

TAPER_FOR_SIZE ReducePlan runs_as_rows(const ReducePlan& plan) {
  ReducePlan runs = plan;
  runs.columns = plan.rows;
  runs.rows = plan.reduced[--runs.reduced_rank];
  runs.count /= plan.rows.extent;
  runs.outputs *= plan.rows.extent;
  return runs;
}

Offsets offsets_of(const ReducePlan::Dim* dims, int rank, std::int64_t index) {
  Offsets at;
  for (int d = rank - 1; d >= 0; --d) {
    // The outermost dimension is what is left: no division.
    const std::int64_t quotient = d == 0 ? 0 : index / dims[d].extent, i = index - quotient * dims[d].extent;
    index = quotient;
    for (int k = 0; k < ReducePlan::kArrays; ++k) at.at[k] += i * dims[d].stride[k];
  }
  return at;
}

void visit_groups(const ReducePlan& plan, std::int64_t cost, std::int64_t widest,
                  void (*visit)(const void*, std::int64_t, std::int64_t, const Offsets&), const void* body) {
  if (plan.outputs == 0) return;
  // Groups as wide as each other, in whole cache lines; an even number of them where that is possible.
  const std::int64_t columns = plan.columns.extent, pairs = ceil_div(columns, 2 * widest);
  const std::int64_t width = columns <= widest ? columns : ceil_div(columns, 32 * pairs) * 16;
  const std::int64_t groups = ceil_div(columns, width);
  const std::int64_t work = std::max<std::int64_t>(plan.count, 1) * width * cost;
  parallel_for(plan.outputs / columns * groups, work, [=, &plan](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t outer = groups == 1 ? unit : unit / groups, column = (unit - outer * groups) * width;
      Offsets at = offsets_of(plan.kept, plan.kept_rank, outer);
      for (int k = 0; k < ReducePlan::kArrays; ++k) at.at[k] += column * plan.columns.stride[k];
      visit(body, outer * columns + column, std::min(columns - column, width), at);
    }
  });
}

std::int64_t rows_of_piece(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kPiece = 32768;
  return ceil_div(std::max(kPiece / width, ceil_div(rows, std::min(kPieces, kPiecesColumns / width))), 8) * 8;
}

void add_in_pieces(std::int64_t rows, std::int64_t width, double* sum,
                   void (*add)(const void*, std::int64_t, std::int64_t, double*), const void* body) {
  const std::int64_t piece = rows_of_piece(rows, width);
  if (rows <= piece) return add(body, 0, rows, sum);
  const std::int64_t pieces = ceil_div(rows, piece);
  double slots[kPiecesColumns];
  parallel_for(pieces, piece * width, [=, to = &slots[0]](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      std::fill_n(to + k * width, width, 0.0);
      add(body, k * piece, std::min(piece, rows - k * piece), to + k * width);
    }
  });
  for (std::int64_t k = 0; k < pieces; ++k)
    for (std::int64_t c = 0; c < width; ++c) sum[c] += slots[k * width + c];
}

std::int64_t rows_of_stretch(const ReducePlan& p, std::int64_t width) {
  if (p.rows.stride[0] != width) return 1;
  const std::int64_t rows = p.rows.extent, some = kReduceColumns / width;
  const std::int64_t more = std::max(some, std::min(kWideColumns / width, rows / 4));
  // Many begin where lines of the cache do if the first does.
  return std::max<std::int64_t>(std::min(more > 16 ? more & -16 : more, rows), 1);
}

TAPER_FOR_SIZE void visit_stretches(const ReducePlan& plan, const Offsets& start, std::int64_t width, bool in_parallel,
                                    void (*visit)(const void*, std::int64_t, std::int64_t), const void* body) {
  const std::int64_t rows = plan.rows.extent, step = rows_of_stretch(plan, width), stride = plan.rows.stride[0];
  const std::int64_t units = in_parallel ? ceil_div(rows, step) : 1, some = in_parallel ? step : rows;
  for_each_block(plan, start, [&](const Offsets& o, std::int64_t) {
    parallel_for(units, 4 * step * width, [=, at = o.at[0]](std::int64_t first, std::int64_t last) {
      for (std::int64_t j = first * some; j < std::min(last * some, rows); j += step)
        visit(body, at + j * stride, std::min(step, rows - j) * width);
    });
  });
}

void Blocks::next() {
  done += plan_.rows.extent;
  for (int d = plan_.reduced_rank - 1; d >= 0; --d) {
    const ReducePlan::Dim& dim = plan_.reduced[d];
    const bool wraps = ++index_[d] == dim.extent;
    const std::int64_t step = wraps ? 1 - dim.extent : 1;
    for (int k = 0; k < ReducePlan::kArrays; ++k) at.at[k] += step * dim.stride[k];
    if (!wraps) return;
    index_[d] = 0;
  }
}

}  // namespace taper::kernels
