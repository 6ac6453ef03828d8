#include "taper/nn/shape.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "catalogue.hpp"
#include "ops/shape_rules.hpp"
#include "spatial.hpp"

namespace taper::nn {

namespace {

/// A model must not depend on the batch's extent, nor lose it.
[[noreturn]] void fail_batch(const char* where, const char* key, std::int64_t dim, const Shape& shape) {
  fail(ErrorKind::config, where, ": ", key, " is the batch: expected a dimension after it, got ", dim, " for ",
       batched_text(shape));
}

int dim_of_sample(const char* where, const char* key, std::int64_t dim, const Shape& shape) {
  const int normalized = normalize_dim(where, dim, shape.rank());
  if (normalized == 0) fail_batch(where, key, dim, shape);
  return normalized;
}

/// The sizes that -1 leaves to be worked out have none.
std::int64_t product_of_known(const Extents& sizes) {
  std::int64_t known = 1;
  int open = 0;
  for (const std::int64_t size : sizes.values) {
    if (size < -1)
      fail(ErrorKind::config, "unflatten: unflattened_size is negative: expected >= 0, or -1 once, got ", size);
    if (size == -1 && ++open > 1)
      fail(ErrorKind::config, "unflatten: unflattened_size is open twice: expected -1 at most once, got ",
           to_json(to_value(sizes)));
    // A product beyond 63 bits divides no extent.
    if (size >= 0) known = checked::mul(known, size).value_or(INT64_MAX);
  }
  return known;
}

Shape unflattened_shape(const Shape& shape, std::int64_t dim, const Extents& sizes) {
  const int d = normalize_dim("unflatten", dim, shape.rank());
  if (sizes.values.empty())
    fail(ErrorKind::config, "unflatten: unflattened_size is empty: expected at least 1 size, got none");
  const std::int64_t known = product_of_known(sizes), extent = shape[d];
  const bool is_open = std::find(sizes.values.begin(), sizes.values.end(), -1) != sizes.values.end();
  const bool fits = is_open ? known > 0 && extent % known == 0 : known == extent;
  if (!fits)
    fail(ErrorKind::shape, "unflatten: unflattened_size does not multiply up to dimension ", d, ": expected ", extent,
         ", got ", to_json(to_value(sizes)), " for ", shape);
  Shape unflattened = shape.slice(0, d);
  for (const std::int64_t size : sizes.values) unflattened = unflattened.concat({size == -1 ? extent / known : size});
  return unflattened.concat(shape.slice(d + 1, shape.rank()));
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor unflatten(const Tensor& input, std::int64_t dim, const Extents& sizes) {
  return reshape(input, unflattened_shape(input.shape(), dim, sizes));
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

Flatten::Flatten(FlattenOptions options) : Layer(options) {}
Squeeze::Squeeze(SqueezeOptions options) : Layer(options) {}
Unsqueeze::Unsqueeze(UnsqueezeOptions options) : Layer(options) {}
Select::Select(SelectOptions options) : Layer(options) {}
Transpose::Transpose(TransposeOptions options) : Layer(options) {}
Permute::Permute(PermuteOptions options) : Layer(std::move(options)) {}
Identity::Identity(IdentityOptions options) : Layer(options) {}

Tensor Permute::forward(const Tensor& x) { return permute(x, options_.dims.values); }

Shape Flatten::infer(Options& options, std::span<const Shape> inputs) {
  return flattened_shape(inputs[0], options.start_dim, options.end_dim);
}

Shape Squeeze::infer(Options& options, std::span<const Shape> inputs) {
  if (inputs[0].rank() > 0) dim_of_sample("squeeze", "dim", options.dim, inputs[0]);
  return squeezed_shape(inputs[0], options.dim);
}

Shape Unsqueeze::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& shape = inputs[0];
  const int dim = normalize_dim("unsqueeze", options.dim, shape.rank() + 1);
  if (dim == 0) fail_batch("unsqueeze", "dim", options.dim, shape);
  return shape.slice(0, dim).concat({1}).concat(shape.slice(dim, shape.rank()));
}

Shape Select::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& shape = inputs[0];
  const int dim = dim_of_sample("select", "dim", options.dim, shape);
  if (options.index < -shape[dim] || options.index >= shape[dim])
    fail(ErrorKind::shape, "select: index out of range: expected ", -shape[dim], " to ", shape[dim] - 1, ", got ",
         options.index);
  return shape.slice(0, dim).concat(shape.slice(dim + 1, shape.rank()));
}

Shape Transpose::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& shape = inputs[0];
  const int dim0 = dim_of_sample("transpose", "dim0", options.dim0, shape),
            dim1 = dim_of_sample("transpose", "dim1", options.dim1, shape);
  std::vector<std::int64_t> extents(shape.begin(), shape.end());
  std::swap(extents[std::size_t(dim0)], extents[std::size_t(dim1)]);
  return Shape(std::span<const std::int64_t>(extents));
}

Shape Permute::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& shape = inputs[0];
  const auto& dims = options.dims.values;
  if (std::int64_t(dims.size()) != shape.rank())
    fail(ErrorKind::shape, "permute: one entry in dims for each dimension: expected ", shape.rank(), ", got ",
         dims.size(), " for ", batched_text(shape));
  std::vector<std::int64_t> extents;
  std::uint32_t seen = 0;
  for (int k = 0; k < shape.rank(); ++k) {
    const int d = normalize_dim("permute", dims[std::size_t(k)], shape.rank());
    if ((d == 0) != (k == 0))
      fail(ErrorKind::config, "permute: dims move the batch: expected 0 first, got ", to_json(to_value(options.dims)));
    if (seen >> d & 1)
      fail(ErrorKind::shape, "permute: a dimension is named twice: expected different dims, got ",
           to_json(to_value(options.dims)));
    seen |= 1u << d;
    extents.push_back(shape[d]);
  }
  return Shape(std::span<const std::int64_t>(extents));
}

Unflatten::Unflatten(UnflattenOptions options) : Layer(std::move(options)) {
  product_of_known(options_.unflattened_size);
}

Shape Unflatten::infer(Options& options, std::span<const Shape> inputs) {
  dim_of_sample("unflatten", "dim", options.dim, inputs[0]);
  return unflattened_shape(inputs[0], options.dim, options.unflattened_size);
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(FlattenOptions& o, FieldVisitor& visit) {
  visit({"start_dim", "first dimension to join"}, o.start_dim);
  visit({"end_dim", "last dimension to join"}, o.end_dim);
}
void fields(SqueezeOptions& o, FieldVisitor& visit) { visit({"dim", "the dimension to remove"}, o.dim); }
void fields(UnsqueezeOptions& o, FieldVisitor& visit) { visit({"dim", "the new dimension's place"}, o.dim); }
void fields(SelectOptions& o, FieldVisitor& visit) {
  visit({"dim", "the dimension that goes", kAny, true}, o.dim);
  visit({"index", "the entry that stays; from the back when negative", kAny, true}, o.index);
}
void fields(TransposeOptions& o, FieldVisitor& visit) {
  visit({"dim0", "a dimension", kAny, true}, o.dim0);
  visit({"dim1", "the one it changes places with", kAny, true}, o.dim1);
}
void fields(PermuteOptions& o, FieldVisitor& visit) {
  visit({"dims", "the dimensions in their new order", kAny, true}, o.dims);
}
void fields(UnflattenOptions& o, FieldVisitor& visit) {
  visit({"dim", "the dimension to cut up", kAny, true}, o.dim);
  visit({"unflattened_size", "its parts' extents; -1 once for what the others leave", kAny, true}, o.unflattened_size);
}
void fields(IdentityOptions&, FieldVisitor&) {}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_shape_layers(std::vector<LayerType>& types) {
  add_layer<Flatten>(types, "Joins neighbouring dimensions into one: [N, C, L] -> [N, C L].", R"({"start_dim": 1})",
                     {{2, 3, 5}});
  add_layer<Squeeze>(types, "Removes a dimension of extent 1: [N, C, 1] -> [N, C].", R"({"dim": 2})", {{2, 3, 1, 5}});
  add_layer<Unsqueeze>(types, "Inserts a dimension of extent 1: [N, C] -> [N, C, 1].", R"({"dim": 1})", {{2, 3, 5}});
  add_layer<Select>(types, "One entry along a dimension: [N, L, C] -> [N, C].", R"({"dim": 1, "index": -1})",
                    {{2, 3, 5}});
  add_layer<Transpose>(types, "Two dimensions change places: [N, C, L] -> [N, L, C].", R"({"dim0": 1, "dim1": 2})",
                       {{2, 3, 5}});
  add_layer<Permute>(types, "The dimensions in another order: [N, H, W, C] -> [N, C, H, W].",
                     R"({"dims": [0, 3, 1, 2]})", {{2, 3, 5, 7}});
  add_layer<Unflatten>(types, "One dimension as several: [N, C L] -> [N, C, L].",
                       R"({"dim": 1, "unflattened_size": [2, -1]})", {{2, 6, 5}});
  add_layer<Identity>(types, "Gives back its input: [*] -> [*].", "{}", {{2, 3, 5}});
}

}  // namespace taper::nn
