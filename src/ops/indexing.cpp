#include "kernels/index.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "core/call_list.hpp"
#include "core/effect.hpp"
#include "kernels/movement.hpp"
#include "ops/promotion.hpp"
#include "ops/strips.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

// Operations that take, join and rearrange parts of tensors.
namespace taper {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Input;
using autograd::Op;
using autograd::Operand;

namespace {

using Extents = std::span<const std::int64_t>;

/// A dimension of `x` that must exist: a scalar has none to take parts along.
int dim_of(const char* where, const Tensor& x, std::int64_t dim) {
  if (x.dim() == 0) [[unlikely]]
    fail(ErrorKind::shape, where, ": a scalar has no dimension: expected at least 1 dimension, got shape []");
  return normalize_dim(where, dim, int(x.dim()));
}

// --- order of dimensions --------------------------------------------------------------------------------------------

struct Order {
  int dims[Shape::kMaxRank] = {};

  std::span<const int> first(std::size_t rank) const { return {dims, rank}; }
};

template <class T>
void permute_forward(const ForwardArgs& args) {
  const Extents shape = args.inputs[0].shape();
  kernels::permute(shape, args.attributes_as<Order>().first(shape.size()), args.inputs[0].as<T>(), args.output.as<T>());
}

template <class T>
void permute_backward(const BackwardArgs& args) {
  const Order& order = args.attributes_as<Order>();
  const Extents shape = args.output_gradient.shape();
  Order inverse;
  for (int d = 0; d < int(shape.size()); ++d) inverse.dims[order.dims[d]] = d;
  const GradientSlot& dx = args.input_gradients[0];
  kernels::permute(shape, inverse.first(shape.size()), args.output_gradient.as<T>(), dx.as<T>(), dx.add);
}

constexpr Op order_op(const char* name, const char* derivative) {
  return {.name = name,
          .derivative = derivative,
          .forward = {permute_forward<float>, permute_forward<double>, permute_forward<std::int64_t>},
          .backward = {permute_backward<float>, permute_backward<double>, nullptr}};
}

constexpr Op kPermute = order_op("permute", "dx = dy with the dimensions put back");
constexpr Op kTranspose = order_op("transpose", "dx = dy with the dimensions swapped back");

Tensor reorder(const Op& op, const Tensor& x, const Order& order) {
  std::int64_t extents[Shape::kMaxRank];
  const int rank = int(x.dim());
  for (int d = 0; d < rank; ++d) extents[d] = x.shape()[order.dims[d]];
  return apply(op, {x}, Shape(Extents(extents, std::size_t(rank))), x.dtype(), order);
}

}  // namespace

Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1) {
  Order order;
  for (int d = 0; d < Shape::kMaxRank; ++d) order.dims[d] = d;
  const int rank = int(x.dim());
  std::swap(order.dims[normalize_dim("transpose", dim0, rank)], order.dims[normalize_dim("transpose", dim1, rank)]);
  return reorder(kTranspose, x, order);
}

Tensor permute(const Tensor& x, Extents dims) {
  if (std::int64_t(dims.size()) != x.dim())
    fail(ErrorKind::shape, "permute: one entry for each dimension: expected ", x.dim(), ", got ", dims.size());
  Order order;
  std::uint32_t seen = 0;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    order.dims[k] = normalize_dim("permute", dims[k], int(x.dim()));
    const std::uint32_t bit = 1u << order.dims[k];
    if (seen & bit)
      fail(ErrorKind::shape, "permute: a dimension is named twice: expected different dimensions, got ", dims[k],
           " again");
    seen |= bit;
  }
  return reorder(kPermute, x, order);
}
Tensor permute(const Tensor& x, std::initializer_list<std::int64_t> dims) {
  return permute(x, Extents(dims.begin(), dims.size()));
}

// --- a range --------------------------------------------------------------------------------------------------------

namespace {

struct Range {
  std::int64_t dim, start, length;
};

template <class T>
void narrow_forward(const ForwardArgs& args) {
  const Range& range = args.attributes_as<Range>();
  const Strips s = strips_of(args.inputs[0].shape(), int(range.dim));
  kernels::narrow(args.inputs[0].as<T>(), args.output.as<T>(), s.outer, s.n, s.inner, range.start, range.length);
}

template <class T>
void narrow_backward(const BackwardArgs& args) {
  const Range& range = args.attributes_as<Range>();
  const Strips s = strips_of(args.inputs[0].shape(), int(range.dim));
  const GradientSlot& dx = args.input_gradients[0];
  kernels::narrow_grad(args.output_gradient.as<T>(), dx.as<T>(), s.outer, s.n, s.inner, range.start, range.length,
                       dx.add);
}

constexpr Op range_op(const char* name, const char* derivative) {
  return {.name = name,
          .derivative = derivative,
          .forward = {narrow_forward<float>, narrow_forward<double>, narrow_forward<std::int64_t>},
          .backward = {narrow_backward<float>, narrow_backward<double>, nullptr},
          .passes_gradient = 1};
}

constexpr Op kNarrow = range_op("narrow", "dx = dy in the range, else 0");
constexpr Op kSelect = range_op("select", "dx = dy at the index, else 0");

}  // namespace

Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
  const int d = dim_of("narrow", x, dim);
  const std::int64_t extent = x.shape()[d];
  if (start < -extent || start > extent)
    fail(ErrorKind::shape, "narrow: start out of range: expected ", -extent, " to ", extent, ", got ", start);
  const std::int64_t first = start < 0 ? start + extent : start;
  if (length < 0 || length > extent - first)
    fail(ErrorKind::shape, "narrow: length out of range: expected 0 to ", extent - first, ", got ", length);
  return apply(kNarrow, {x}, x.shape().with(d, length), x.dtype(), Range{d, first, length});
}

Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index) {
  const int d = dim_of("select", x, dim);
  const Shape& shape = x.shape();
  if (index < -shape[d] || index >= shape[d])
    fail(ErrorKind::shape, "select: index out of range: expected ", -shape[d], " to ", shape[d] - 1, ", got ", index);
  return apply(kSelect, {x}, shape.slice(0, d).concat(shape.slice(d + 1, shape.rank())), x.dtype(),
               Range{d, index < 0 ? index + shape[d] : index, 1});
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim) {
  const int d = dim_of("split", x, dim);
  std::int64_t rest = x.shape()[d];
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > rest)
      fail(ErrorKind::shape, "split: sizes must add up to the extent: expected 0 to ", rest, ", got ", size);
    rest -= size;
  }
  if (rest != 0)
    fail(ErrorKind::shape, "split: sizes must add up to the extent: expected ", x.shape()[d], ", got ",
         x.shape()[d] - rest);
  std::vector<Tensor> pieces;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    pieces.push_back(narrow(x, d, start, size));
    start += size;
  }
  return pieces;
}

namespace {

/// `extent` cut in pieces of `size`, the last one smaller; at least one piece.
std::vector<std::int64_t> equal_sizes(std::int64_t extent, std::int64_t size) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t start = 0; start < extent; start += sizes.back()) sizes.push_back(std::min(size, extent - start));
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim) {
  const int d = dim_of("split", x, dim);
  if (size <= 0) fail(ErrorKind::config, "split: the size must be positive: expected >= 1, got ", size);
  return split(x, equal_sizes(x.shape()[d], size), d);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim) {
  const int d = dim_of("chunk", x, dim);
  if (chunks <= 0) fail(ErrorKind::config, "chunk: the number of chunks must be positive: expected >= 1, got ", chunks);
  const std::int64_t extent = x.shape()[d];
  if (extent == 0) return split(x, std::vector<std::int64_t>(std::size_t(chunks), 0), d);
  return split(x, equal_sizes(extent, extent / chunks + (extent % chunks != 0)), d);
}

// --- by index -------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void index_select_forward(const ForwardArgs& args) {
  const Strips s = strips_of(args.inputs[0].shape(), args.attributes_as<int>());
  kernels::index_select(args.inputs[0].as<T>(), args.inputs[1].as<std::int64_t>(), args.output.as<T>(), s.outer, s.n,
                        s.inner, args.inputs[1].numel);
}

template <class T>
void index_select_backward(const BackwardArgs& args) {
  const Strips s = strips_of(args.inputs[0].shape(), args.attributes_as<int>());
  const GradientSlot& dx = args.input_gradients[0];
  kernels::index_select_grad(args.output_gradient.as<T>(), args.inputs[1].as<std::int64_t>(), dx.as<T>(), s.outer, s.n,
                             s.inner, args.inputs[1].numel, dx.add);
}

constexpr Op kIndexSelect{
    .name = "index_select",
    .derivative = "dx[index] += dy",
    .forward = {index_select_forward<float>, index_select_forward<double>, index_select_forward<std::int64_t>},
    .backward = {index_select_backward<float>, index_select_backward<double>, nullptr},
    .needs = {autograd::needs_input(1)}};

template <class T>
void gather_forward(const ForwardArgs& args) {
  kernels::gather({args.inputs[0].shape(), args.inputs[1].shape(), args.attributes_as<int>()}, args.inputs[0].as<T>(),
                  args.inputs[1].as<std::int64_t>(), args.output.as<T>());
}

template <class T>
void gather_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::gather_grad({args.inputs[0].shape(), args.inputs[1].shape(), args.attributes_as<int>()},
                       args.output_gradient.as<T>(), args.inputs[1].as<std::int64_t>(), dx.as<T>(), dx.add);
}

constexpr Op kGather{.name = "gather",
                     .derivative = "dx[index] += dy",
                     .forward = {gather_forward<float>, gather_forward<double>, gather_forward<std::int64_t>},
                     .backward = {gather_backward<float>, gather_backward<double>, nullptr},
                     .needs = {autograd::needs_input(1)}};

struct IndexCheck {
  const char* where;
  std::int64_t extent;
};

void check_values(const ForwardArgs& args) {
  const auto [where, extent] = args.attributes_as<IndexCheck>();
  const auto* values = args.inputs[0].as<std::int64_t>();
  const std::int64_t bad = kernels::find_bad_index(values, args.inputs[0].numel, extent);
  if (bad >= 0) [[unlikely]]
    fail(ErrorKind::shape, where, ": index out of range: expected 0 to ", extent - 1, ", got ", values[bad], " in row ",
         bad);
}

void check_index(const char* where, const Tensor& index, std::int64_t extent) {
  detail::run_effect("check index", check_values, {index}, {}, IndexCheck{where, extent});
}

void check_index_type(const char* where, const Tensor& index) {
  if (index.dtype() != DType::int64)
    fail(ErrorKind::type, where, ": indices must be whole numbers: expected int64, got ", index.dtype());
}

}  // namespace

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  const int d = dim_of("index_select", x, dim);
  check_index_type("index_select", index);
  if (index.dim() != 1)
    fail(ErrorKind::shape, "index_select: the index must be a vector: expected 1 dimension, got ", index.shape());
  check_index("index_select", index, x.shape()[d]);
  return apply(kIndexSelect, {x, index}, x.shape().with(d, index.numel()), x.dtype(), d);
}

Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index) {
  const int d = dim_of("gather", x, dim);
  check_index_type("gather", index);
  bool fits = index.dim() == x.dim();
  for (int i = 0; fits && i < x.dim(); ++i) fits = i == d || index.shape()[i] <= x.shape()[i];
  if (!fits)
    fail(ErrorKind::shape, "gather: the index does not fit: expected at most ", x.shape(),
         " outside the gathered dimension ", d, ", got ", index.shape());
  check_index("gather", index, x.shape()[d]);
  return apply(kGather, {x, index}, index.shape(), x.dtype(), d);
}

// --- joining --------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void cat_forward(const ForwardArgs& args) {
  const int dim = args.attributes_as<int>();
  const Strips s = strips_of(args.output.shape(), dim);
  std::int64_t start = 0;
  for (const Operand& part : args.inputs) {
    const std::int64_t length = part.extents[dim];
    kernels::place(part.as<T>(), args.output.as<T>(), s.outer, s.n, s.inner, start, length);
    start += length;
  }
}

template <class T>
void cat_backward(const BackwardArgs& args) {
  const int dim = args.attributes_as<int>();
  const Strips s = strips_of(args.output_gradient.shape(), dim);
  const T* dy = args.output_gradient.as<T>();
  std::int64_t start = 0;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const std::int64_t length = args.inputs[i].extents[dim];
    if (const GradientSlot& dx = args.input_gradients[i]) {
      const auto part = dx.add ? kernels::narrow_add<T> : kernels::narrow<T>;
      part(dy, dx.as<T>(), s.outer, s.n, s.inner, start, length);
    }
    start += length;
  }
}

constexpr Op kCat{.name = "cat",
                  .derivative = "each part gets its range of dy",
                  .forward = {cat_forward<float>, cat_forward<double>, cat_forward<std::int64_t>},
                  .backward = {cat_backward<float>, cat_backward<double>, nullptr},
                  .passes_gradient = ~0u};

constexpr std::size_t kMaxInputs = 65535;  // of one node

/// Joins parts that are known to fit; more than a node can hold are joined in groups first.
Tensor join(std::span<const Tensor> parts, int dim) {
  if (parts.size() > kMaxInputs) {
    std::vector<Tensor> groups;
    for (std::size_t i = 0; i < parts.size(); i += kMaxInputs)
      groups.push_back(join(parts.subspan(i, std::min(kMaxInputs, parts.size() - i)), dim));
    return join(groups, dim);
  }
  std::int64_t extent = 0;
  detail::Few<Input> few;
  detail::CallList<Input> inputs(parts.size(), few);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto longer = checked::add(extent, parts[i].shape()[dim]);
    if (!longer) fail(ErrorKind::shape, "cat: the extent overflows 64 bits: expected below 2^63, got more");
    extent = *longer;
    inputs.set(i, parts[i]);
  }
  return apply(kCat, inputs.all(), parts[0].shape().with(dim, extent), parts[0].dtype(), &dim, sizeof dim);
}

void check_parts(const char* where, std::span<const Tensor> parts) {
  if (parts.empty()) fail(ErrorKind::shape, where, ": nothing to join: expected at least 1 tensor, got 0");
}

[[noreturn]] void fail_part(const Tensor& first, int dim, const Tensor& part, std::size_t number) {
  std::string expected = "[";
  for (int d = 0; d < first.dim(); ++d) {
    if (d > 0) expected += ", ";
    expected += d == dim ? std::string("*") : cat(first.shape()[d]);
  }
  fail(ErrorKind::shape, "cat: shapes differ outside the joined dimension: expected ", expected, "], got ",
       part.shape(), " in part ", number);
}

}  // namespace

Tensor cat(std::span<const Tensor> parts, std::int64_t dim) {
  check_parts("cat", parts);
  const Tensor& first = parts[0];
  const int d = dim_of("cat", first, dim);
  DType dtype = first.dtype();
  bool mixed = false;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    if (part.dim() != first.dim() || !(part.shape().with(d, 0) == first.shape().with(d, 0)))
      fail_part(first, d, part, i);
    mixed |= part.dtype() != dtype;
    dtype = promoted(dtype, part.dtype());
  }
  if (!mixed) return join(parts, d);
  std::vector<Tensor> converted;
  for (const Tensor& part : parts) converted.push_back(to(part, dtype));
  return join(converted, d);
}

Tensor stack(std::span<const Tensor> parts, std::int64_t dim) {
  check_parts("stack", parts);
  const Shape& shape = parts[0].shape();
  const int d = normalize_dim("stack", dim, shape.rank() + 1);
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (!(parts[i].shape() == shape))
      fail(ErrorKind::shape, "stack: shapes differ: expected ", shape, ", got ", parts[i].shape(), " in part ", i);
  if (d < shape.rank()) {
    // Joined along a dimension that is cut into the parts afterwards, they lie where they belong.
    const Shape all = shape.slice(0, d).concat({std::int64_t(parts.size())}).concat(shape.slice(d, shape.rank()));
    return reshape(cat(parts, d), {all.begin(), all.end()});
  }
  std::vector<Tensor> layers;
  for (const Tensor& part : parts) layers.push_back(unsqueeze(part, d));
  return cat(layers, d);
}

Tensor cat(std::initializer_list<Tensor> parts, std::int64_t dim) {
  return cat(std::span(parts.begin(), parts.size()), dim);
}
Tensor stack(std::initializer_list<Tensor> parts, std::int64_t dim) {
  return stack(std::span(parts.begin(), parts.size()), dim);
}

}  // namespace taper
