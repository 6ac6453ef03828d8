#include <algorithm>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "core/dispatch.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/pad.hpp"
#include "ops/shape_rules.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

// Operations that give the same elements another shape.
namespace taper {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using autograd::share_as;

namespace {

using Extents = std::span<const std::int64_t>;

Extents list(std::initializer_list<std::int64_t> extents) { return {extents.begin(), extents.size()}; }

/// As a `Shape` is written, for extents that may still hold -1.
std::string written(Extents extents) {
  std::string out = "[";
  for (const std::int64_t extent : extents) out += cat(out.size() > 1 ? ", " : "", extent);
  return out + "]";
}

/// The shape `extents` stand for when `x` takes it, one -1 being what the others leave.
Shape filled(const char* where, const Tensor& x, Extents extents) {
  std::int64_t known[Shape::kMaxRank] = {};
  int open = -1;
  if (extents.size() > std::size_t(Shape::kMaxRank)) return Shape(extents);  // refuses it
  for (int d = 0; d < int(extents.size()); ++d) {
    known[d] = extents[std::size_t(d)];
    if (known[d] != -1) continue;
    if (open >= 0)
      fail(ErrorKind::shape, where, ": more than one extent is -1: expected at most 1, got ", written(extents));
    open = d;
    known[d] = 1;
  }
  const Shape rest(Extents(known, extents.size()));
  if (open < 0) {
    if (rest.numel() != x.numel())
      fail(ErrorKind::shape, where, ": number of elements differs: expected ", x.numel(), " for ", x.shape(), ", got ",
           rest.numel(), " for ", rest);
    return rest;
  }
  if (rest.numel() == 0)
    fail(ErrorKind::shape, where, ": -1 stands beside an extent of 0: expected extents that determine it, got ",
         written(extents));
  if (x.numel() % rest.numel() != 0)
    fail(ErrorKind::shape, where,
         ": the extents beside -1 do not divide the number of elements: expected a divisor of ", x.numel(), ", got ",
         rest.numel(), " for ", written(extents));
  return rest.with(open, x.numel() / rest.numel());
}

}  // namespace

// --- sharing data ---------------------------------------------------------------------------------------------------

Tensor reshape(const Tensor& x, Extents shape) { return share_as(x, filled("reshape", x, shape)); }
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> shape) { return reshape(x, list(shape)); }
Tensor view(const Tensor& x, std::initializer_list<std::int64_t> shape) {
  return share_as(x, filled("view", x, list(shape)));
}

Shape flattened_shape(const Shape& shape, std::int64_t start_dim, std::int64_t end_dim) {
  const int first = normalize_dim("flatten", start_dim, shape.rank());
  const int last = normalize_dim("flatten", end_dim, shape.rank());
  if (first > last)
    fail(ErrorKind::shape, "flatten: start_dim comes after end_dim: expected at most ", last, ", got ", first);
  if (shape.rank() == 0) return {1};
  const Shape joined = shape.slice(first, last + 1);
  return shape.slice(0, first).concat({joined.numel()}).concat(shape.slice(last + 1, shape.rank()));
}

Tensor flatten(const Tensor& x, std::int64_t start_dim, std::int64_t end_dim) {
  return share_as(x, flattened_shape(x.shape(), start_dim, end_dim));
}

Tensor squeeze(const Tensor& x) {
  std::int64_t kept[Shape::kMaxRank];
  std::size_t rank = 0;
  for (const std::int64_t extent : x.shape())
    if (extent != 1) kept[rank++] = extent;
  return share_as(x, Shape(Extents(kept, rank)));
}

Shape squeezed_shape(const Shape& shape, std::int64_t dim) {
  const int d = normalize_dim("squeeze", dim, shape.rank());
  if (shape.rank() == 0 || shape[d] != 1) return shape;
  std::int64_t kept[Shape::kMaxRank];
  std::copy(shape.begin() + d + 1, shape.end(), std::copy_n(shape.begin(), d, kept));
  return Shape(kept, std::size_t(shape.rank() - 1));
}

Tensor squeeze(const Tensor& x, std::int64_t dim) { return share_as(x, squeezed_shape(x.shape(), dim)); }

Tensor unsqueeze(const Tensor& x, std::int64_t dim) {
  const Shape& shape = x.shape();
  const int d = normalize_dim("unsqueeze", dim, shape.rank() + 1);
  return share_as(x, shape.slice(0, d).concat({1}).concat(shape.slice(d, shape.rank())));
}

// --- repeating ------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void expand_forward(const ForwardArgs& args) {
  kernels::broadcast_copy(kernels::broadcast_plan(args.output.shape(), {args.inputs[0].shape()}),
                          args.inputs[0].as<T>(), args.output.as<T>());
}

template <class T>
void expand_backward(const BackwardArgs& args) {
  const Extents out = args.output_gradient.shape(), in = args.inputs[0].shape();
  const GradientSlot& dx = args.input_gradients[0];
  kernels::reduce_to(kernels::grad_plan(out, in, in, 0), args.output_gradient.as<T>(), dx.as<T>(), dx.add);
}

constexpr Op kExpand{.name = "expand",
                     .derivative = "dx = dy summed over the repeated dimensions",
                     .forward = {expand_forward<float>, expand_forward<double>, expand_forward<std::int64_t>},
                     .backward = {expand_backward<float>, expand_backward<double>, nullptr},
                     .passes_gradient = 1};

}  // namespace

Tensor expand(const Tensor& x, Extents shape) {
  if (shape.size() > std::size_t(Shape::kMaxRank)) (void)Shape(shape);  // refuses it
  const auto refuse = [&] {
    fail(ErrorKind::shape, "expand: the shape does not fit: expected extents that repeat ", x.shape(), ", got ",
         written(shape));
  };
  const std::size_t added = shape.size() - std::size_t(x.dim());
  if (shape.size() < std::size_t(x.dim())) refuse();
  std::int64_t extents[Shape::kMaxRank];
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t old = d < added ? 1 : x.shape()[int(d - added)];
    extents[d] = shape[d] == -1 && d >= added ? old : shape[d];
    if (extents[d] < 0 || (old != 1 && old != extents[d])) refuse();
  }
  return apply(kExpand, {x}, Shape(Extents(extents, shape.size())), x.dtype());
}
Tensor expand(const Tensor& x, std::initializer_list<std::int64_t> shape) { return expand(x, list(shape)); }

// --- padding --------------------------------------------------------------------------------------------------------

namespace {

struct Padding {
  std::int64_t amounts[2 * Shape::kMaxRank] = {};
  std::int64_t count = 0;
  kernels::PadKind kind = kernels::PadKind::value;
  double value = 0;

  kernels::PadPlan plan(Extents in) const { return kernels::pad_plan(in, {amounts, std::size_t(count)}, kind); }
};

template <class T>
void pad_forward(const ForwardArgs& args) {
  const auto& padding = args.attributes_as<Padding>();
  kernels::pad(padding.plan(args.inputs[0].shape()), args.inputs[0].as<T>(), args.output.as<T>(), T(padding.value));
}

template <class T>
void pad_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::pad_grad(args.attributes_as<Padding>().plan(args.inputs[0].shape()), args.output_gradient.as<T>(),
                    dx.as<T>(), dx.add);
}

constexpr Op kPad{.name = "pad",
                  .derivative = "dx = dy summed over the places x was copied to",
                  .forward = {pad_forward<float>, pad_forward<double>, pad_forward<std::int64_t>},
                  .backward = {pad_backward<float>, pad_backward<double>, nullptr}};

kernels::PadKind kind_of(PadMode mode) {
  switch (mode) {
    case PadMode::zeros:
      return kernels::PadKind::value;
    case PadMode::reflect:
      return kernels::PadKind::reflect;
    case PadMode::replicate:
      return kernels::PadKind::replicate;
    case PadMode::circular:
      return kernels::PadKind::circular;
  }
  fail(ErrorKind::config, "pad: unknown mode: expected zeros, reflect, replicate or circular, got ", int(mode));
}

/// One padded dimension, for messages.
struct PadSide {
  const char* where;
  PadMode mode;
  std::int64_t extent;
  int dim;
};

/// Refuses what the mode cannot pad by on one side when the other side crops to `left_over`.
void check_amount(const PadSide& side, std::int64_t amount, std::int64_t left_over) {
  if (amount <= 0) return;
  const auto& [where, mode, extent, dim] = side;
  if (mode == PadMode::reflect && amount >= extent)
    fail(ErrorKind::shape, where, ": reflect needs amounts below the extent: expected < ", extent, ", got ", amount,
         " in dimension ", dim);
  if (mode == PadMode::circular && amount > left_over)
    fail(ErrorKind::shape, where, ": circular needs amounts up to the extent", left_over < extent ? " left" : "",
         ": expected <= ", left_over, ", got ", amount, " in dimension ", dim);
  if (mode == PadMode::replicate && extent == 0)
    fail(ErrorKind::shape, where, ": replicate needs an edge to repeat: expected an extent >= 1, got 0 in dimension ",
         dim);
}

std::int64_t padded_extent(const PadSide& side, std::int64_t left, std::int64_t right) {
  const auto& [where, mode, extent, dim] = side;
  const auto one_side = checked::add(extent, left);
  const auto padded = one_side ? checked::add(*one_side, right) : std::nullopt;
  const auto cropped = checked::add(std::min<std::int64_t>(left, 0), std::min<std::int64_t>(right, 0));
  if (!padded || !cropped)
    fail(ErrorKind::shape, where, ": the extent overflows 64 bits: expected below 2^63, got ", left, " and ", right,
         " around ", extent);
  // Reflect and replicate can pad with what they crop, so that only what comes out counts.
  const bool copies_cropped = mode == PadMode::reflect || mode == PadMode::replicate;
  if (copies_cropped ? *padded < std::min<std::int64_t>(extent, 1) : extent + *cropped < 0)
    fail(ErrorKind::shape, where, ": crops more than there is: expected at most ",
         copies_cropped ? std::max<std::int64_t>(extent - 1, 0) : extent, ", got ", left, " and ", right,
         " in dimension ", dim);
  check_amount(side, left, extent + std::min<std::int64_t>(right, 0));
  check_amount(side, right, extent + std::min<std::int64_t>(left, 0));
  return *padded;
}

}  // namespace

Shape padded_shape(const char* where, const Shape& shape, Extents amounts, PadMode mode) {
  if (amounts.empty() || amounts.size() % 2 != 0)
    fail(ErrorKind::config, where, ": amounts come in pairs: expected {left, right} for each dimension, got ",
         amounts.size(), " numbers");
  if (amounts.size() / 2 > std::size_t(shape.rank()))
    fail(ErrorKind::shape, where, ": more pairs than dimensions: expected at most ", shape.rank(), ", got ",
         amounts.size() / 2);
  std::int64_t extents[Shape::kMaxRank];
  std::copy(shape.begin(), shape.end(), extents);
  for (std::size_t i = 0; i < amounts.size(); i += 2) {
    const int dim = shape.rank() - 1 - int(i / 2);
    extents[dim] = padded_extent({where, mode, shape[dim], dim}, amounts[i], amounts[i + 1]);
  }
  return Shape(Extents(extents, std::size_t(shape.rank())));
}

Tensor pad(const Tensor& x, Extents amounts, PadMode mode, double value) {
  Padding padding{.count = std::int64_t(amounts.size()), .kind = kind_of(mode), .value = value};
  const Shape padded = padded_shape("pad", x.shape(), amounts, mode);
  if (x.dtype() == DType::int64) padding.value = double(to_element<std::int64_t>("pad", value));
  std::copy(amounts.begin(), amounts.end(), padding.amounts);
  return apply(kPad, {x}, padded, x.dtype(), padding);
}
Tensor pad(const Tensor& x, std::initializer_list<std::int64_t> amounts, PadMode mode, double value) {
  return pad(x, list(amounts), mode, value);
}

}  // namespace taper
