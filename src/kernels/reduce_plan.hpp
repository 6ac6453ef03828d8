#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/loop_hints.hpp"
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

/// The plan in which the runs of one are columns, and its innermost reduced dimension outside them is the rows.
ReducePlan runs_as_rows(const ReducePlan& plan);

/// Bytes of the elements of type T that are read.
template <class T>
double read_bytes(const ReducePlan& p) {
  return double(p.outputs) * double(p.count) * sizeof(T);
}

/// Whether caches hardly hold them.
template <class T>
bool is_far(const ReducePlan& p) {
  return is_far(read_bytes<T>(p));
}

/// Outputs are worked on in groups of at most this many neighbours: of `kWideColumns` where a group is read once, and
/// its rows by several threads; of `kFarColumns` where memory is far, as parts of rows take several times as long
/// there.
inline constexpr std::int64_t kReduceColumns = 64, kWideColumns = 256, kFarColumns = 1040;

/// A position in each array of a plan.
struct Offsets {
  std::int64_t at[ReducePlan::kArrays] = {0, 0, 0};
};

/// The offsets of element `index`, counted row-major over the first `rank` of `dims`.
Offsets offsets_of(const ReducePlan::Dim* dims, int rank, std::int64_t index);

/// Calls `visit(body, output, width, offsets)` for groups of `width` neighbouring outputs, at most `widest`, from
/// number `output` on, `offsets` being where the first element of the first of them lies; in parallel, in groups fixed
/// by the plan.
void visit_groups(const ReducePlan& plan, std::int64_t cost, std::int64_t widest,
                  void (*visit)(const void* body, std::int64_t, std::int64_t, const Offsets&), const void* body);

/// Outputs of no more elements are worked on as where memory is far: what is done once a group would take longer.
inline constexpr std::int64_t kFewRows = 7;

/// Calls `body(output, width, offsets)` for groups of elements of type T, of as many as `near` columns where caches
/// hold what is reduced.
template <class T, class Body>
void for_each_group(const ReducePlan& plan, std::int64_t cost, const Body& body, std::int64_t near = kReduceColumns) {
  visit_groups(
      plan, cost, is_far<T>(plan) || plan.count <= kFewRows ? kFarColumns : near,
      [](const void* b, std::int64_t output, std::int64_t width, const Offsets& start) {
        (*static_cast<const Body*>(b))(output, width, start);
      },
      &body);
}

/// Many rows of `width` columns are worked on in parallel in at most `kPieces` pieces, of as many rows as this, whose
/// columns have room in kPiecesColumns: it depends on `rows` and `width` alone.
inline constexpr std::int64_t kPieces = 16, kPiecesColumns = kPieces * kWideColumns;
std::int64_t rows_of_piece(std::int64_t rows, std::int64_t width);

/// sum[c] += what `add(body, first, n, slot)` adds to slot[c] for rows [first, first + n), c < width <= kFarColumns:
/// for `rows` rows at once, or of many in pieces. The same with an `add` that is called by its address.
void add_in_pieces(std::int64_t rows, std::int64_t width, double* sum,
                   void (*add)(const void* body, std::int64_t first, std::int64_t n, double* slot), const void* body);
template <class Add>
void add_in_pieces(std::int64_t rows, std::int64_t width, double* sum, const Add& add) {
  add_in_pieces(
      rows, width, sum,
      [](const void* b, std::int64_t first, std::int64_t n, double* slot) {
        (*static_cast<const Add*>(b))(first, n, slot);
      },
      &add);
}

/// The blocks of `plan.rows` that are reduced into the group at `start`, in order.
class Blocks {
 public:
  Blocks(const ReducePlan& plan, const Offsets& start) : at(start), plan_(plan) {}

  explicit operator bool() const { return done < plan_.count; }
  void next();

  Offsets at;             ///< where the block starts
  std::int64_t done = 0;  ///< the reduced elements before it

 private:
  const ReducePlan& plan_;
  std::int64_t index_[Shape::kMaxRank] = {};
};

/// Calls `body(offsets, index)` for each block of the group at `start`; `index` counts the reduced elements before it.
template <class Body>
[[gnu::always_inline]] inline void for_each_block(const ReducePlan& plan, const Offsets& start, const Body& body) {
  for (Blocks block(plan, start); block; block.next()) body(block.at, block.done);
}

/// Whether the elements of a group's only output lie side by side.
inline bool is_run(const ReducePlan& p, std::int64_t width) { return width == 1 && p.rows.stride[0] == 1; }

/// How many rows of a group's `width` columns are a stretch: where they follow each other, as many as kReduceColumns
/// elements hold, so that narrow ones fill vectors, or of many rows up to four times as many.
std::int64_t rows_of_stretch(const ReducePlan& p, std::int64_t width);

/// Calls `visit(body, element, n)` for stretches of `n` neighbouring elements of the first array, `element` being the
/// offset of the first: for all rows of a group, in order, or in parallel if that is asked for.
void visit_stretches(const ReducePlan& plan, const Offsets& start, std::int64_t width, bool in_parallel,
                     void (*visit)(const void* body, std::int64_t element, std::int64_t n), const void* body);

/// Calls `body(element, n)` for the stretches.
template <class Body>
void for_each_stretch(const ReducePlan& plan, const Offsets& start, std::int64_t width, const Body& body,
                      bool in_parallel = false) {
  visit_stretches(
      plan, start, width, in_parallel,
      [](const void* b, std::int64_t element, std::int64_t n) {
        const Body copy = *static_cast<const Body*>(b);  // of which the compiler knows that no result overlaps it
        copy(element, n);
      },
      &body);
}

}  // namespace taper::kernels
