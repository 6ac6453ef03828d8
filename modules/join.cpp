#include "taper/nn/join.hpp"

#include "base/checked.hpp"
#include "catalogue.hpp"
#include "kernels/broadcast.hpp"
#include "spatial.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

namespace {

void check_count(const char* where, std::size_t count) {
  if (count < 2) fail(ErrorKind::config, where, ": takes several inputs: expected >= 2, got ", count);
}

[[noreturn]] void fail_rank(const char* where, int expected, int got, std::size_t input) {
  fail(ErrorKind::shape, where, ": inputs differ in the number of dimensions: expected ", expected, "-D, got ", got,
       "-D in input ", input);
}

// --- each join: its function, and its shape from batched shapes -----------------------------------------------------

Tensor joined(const AddOptions&, std::span<const Tensor> inputs) {
  Tensor y = add(inputs[0], inputs[1]);
  for (const Tensor& x : inputs.subspan(2)) y = add(y, x);
  return y;
}

Tensor joined(const MultiplyOptions&, std::span<const Tensor> inputs) {
  Tensor y = mul(inputs[0], inputs[1]);
  for (const Tensor& x : inputs.subspan(2)) y = mul(y, x);
  return y;
}

Tensor joined(const ConcatOptions& options, std::span<const Tensor> inputs) { return cat(inputs, options.dim); }

template <class Options>
Shape joined_shape(const Options&, std::span<const Shape> inputs) {
  Shape shape = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const auto both = kernels::broadcast_shape(shape, inputs[i]);
    if (!both)
      fail(ErrorKind::shape, Options::kType, ": inputs do not fit: expected equal extents or 1, got ",
           batched_text(shape), " and ", batched_text(inputs[i]), " in input ", i);
    shape = *both;
  }
  return shape;
}

Shape joined_shape(const ConcatOptions& options, std::span<const Shape> inputs) {
  const Shape& first = inputs[0];
  const int dim = normalize_dim("Concat", options.dim, first.rank());
  std::int64_t extent = first[dim];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!(inputs[i].with(dim, 0) == first.with(dim, 0)))
      fail(ErrorKind::shape, "Concat: inputs differ outside dimension ", dim, ": expected as in ", batched_text(first),
           ", got ", batched_text(inputs[i]), " in input ", i);
    extent = checked::add(extent, inputs[i][dim]).value_or(-1);  // a negative extent is refused
  }
  return first.with(dim, extent);
}

}  // namespace

// --- layers ---------------------------------------------------------------------------------------------------------

template <class O>
Tensor Join<O>::forward_all(std::span<const Tensor> inputs) {
  check_count(O::kType, inputs.size());
  for (std::size_t i = 1; i < inputs.size(); ++i)
    if (inputs[i].dim() != inputs[0].dim()) fail_rank(O::kType, int(inputs[0].dim()), int(inputs[i].dim()), i);
  return joined(this->options_, inputs);
}

template <class O>
Shape Join<O>::infer(O& options, std::span<const Shape> inputs) {
  check_count(O::kType, inputs.size());
  for (std::size_t i = 1; i < inputs.size(); ++i)
    if (inputs[i].rank() != inputs[0].rank()) fail_rank(O::kType, inputs[0].rank(), inputs[i].rank(), i);
  return joined_shape(options, inputs);
}

template class Join<AddOptions>;
template class Join<MultiplyOptions>;
template class Join<ConcatOptions>;

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(AddOptions&, FieldVisitor&) {}
void fields(MultiplyOptions&, FieldVisitor&) {}
void fields(ConcatOptions& o, FieldVisitor& visit) { visit({"dim", "the dimension to join along"}, o.dim); }

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_join_layers(std::vector<LayerType>& types) {
  add_layer<Add>(types, "The sum of its inputs, an extent of 1 repeating: [*], [*], ... -> [*].", "{}",
                 {{2, 3, 5}, {2, 3, 5}}, 2, kManyInputs);
  add_layer<Multiply>(types, "The product of its inputs, an extent of 1 repeating: [*], [*], ... -> [*].", "{}",
                      {{2, 3, 5}, {2, 3, 1}}, 2, kManyInputs);
  add_layer<Concat>(types, "Its inputs one after another along a dimension: [N, C0, L], [N, C1, L], ... -> [N, C, L].",
                    R"({"dim": 1})", {{2, 3, 5}, {2, 7, 5}}, 2, kManyInputs);
}

}  // namespace taper::nn
