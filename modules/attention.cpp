#include "attention.hpp"

#include <cmath>
#include <limits>

#include "kernels/broadcast.hpp"
#include "kernels/softmax.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/dropout.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;

namespace {

constexpr const char* kSdpa = "scaled_dot_product_attention";

// --- record ---------------------------------------------------------------------------------------------------------

template <class T>
void softmax_forward(const ForwardArgs& args) {
  const std::int64_t n = args.output.shape().back(), rows = n > 0 ? args.output.numel / n : 0;
  kernels::masked_softmax(args.inputs[0].as<T>(), args.output.as<T>(), rows, n);
}

template <class T>
void softmax_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  const std::int64_t n = args.output.shape().back(), rows = n > 0 ? args.output.numel / n : 0;
  kernels::softmax_grad(args.output_gradient.as<T>(), args.output.as<T>(), dx.as<T>(), rows, n, 1, dx.add);
}

/// Softmax over the last dimension, in which a row of nothing but -inf gives zeros.
constexpr autograd::Op kMaskedSoftmax{.name = "masked_softmax",
                                      .derivative = "dx = y * (dy - sum(dy * y))",
                                      .forward = {softmax_forward<float>, softmax_forward<double>, nullptr},
                                      .backward = {softmax_backward<float>, softmax_backward<double>, nullptr},
                                      .needs = {autograd::kNeedsOutput}};

// --- masks ----------------------------------------------------------------------------------------------------------

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Tensor causal_mask(std::int64_t queries, std::int64_t keys, DType dtype) {
  const Tensor i = arange(0, queries, 1, DType::int64).reshape({queries, 1}), j = arange(0, keys, 1, DType::int64);
  return where(le(j, i), scalar(0, dtype), scalar(-kInfinity, dtype));
}

Tensor added_mask(const Tensor& mask, bool seen, DType dtype) {
  if (mask.dtype() != DType::int64) return mask;
  const Tensor yes = scalar(0, dtype), no = scalar(-kInfinity, dtype);
  return where(mask, seen ? yes : no, seen ? no : yes);
}

void check_mask_type(const char* where, const char* name, const Tensor& mask, DType dtype) {
  if (mask.dtype() == DType::int64 || mask.dtype() == dtype) return;
  fail(ErrorKind::type, where, ": ", name, " has another element type: expected ", dtype, " or int64, got ",
       mask.dtype(), "; convert with to()");
}

// --- the product that all share -------------------------------------------------------------------------------------

Tensor attention_scores(const Tensor& query, const Tensor& key, double scale, const Tensor& mask) {
  const Tensor product = matmul(query * scale, key, false, true);
  return mask.defined() ? product + mask : product;
}

Tensor masked_softmax(const Tensor& scores) {
  return autograd::apply(kMaskedSoftmax, {scores}, scores.shape(), scores.dtype());
}

double default_scale(std::int64_t size) { return size > 0 ? 1 / std::sqrt(double(size)) : 1; }

void fail_extent(const char* where, const char* what, const std::string& expected, const Shape& got) {
  fail(ErrorKind::shape, where, ": ", what, ": expected ", expected, ", got ", got);
}

// --- checks of scaled_dot_product_attention -------------------------------------------------------------------------

namespace {

/// Refuses what does not fit; returns the shape of the scores.
Shape check_sdpa(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                 const AttentionSettings& settings) {
  const struct {
    const char* name;
    const Tensor& tensor;
  } operands[] = {{"query", query}, {"key", key}, {"value", value}};
  for (const auto& [name, tensor] : operands) {
    check_floating(kSdpa, tensor.dtype());
    if (tensor.dim() < 2)
      fail(ErrorKind::shape, kSdpa, ": ", name, " has too few dimensions: expected at least 2, got ", tensor.shape());
    if (tensor.dtype() != query.dtype())
      fail(ErrorKind::type, kSdpa, ": element types differ: expected ", query.dtype(), ", got ", tensor.dtype(), " in ",
           name, "; convert with to()");
  }
  const Shape &q = query.shape(), &k = key.shape(), &v = value.shape();
  if (k.back() != q.back()) fail_extent(kSdpa, "key does not fit the query", cat("[.., S, ", q.back(), "]"), k);
  if (v.back(1) != k.back(1)) fail_extent(kSdpa, "value does not fit the key", cat("[.., ", k.back(1), ", V]"), v);
  const auto leading = [](const Shape& shape) { return shape.slice(0, shape.rank() - 2); };
  const auto batch = kernels::broadcast_shape(leading(q), leading(k));
  const auto all = batch ? kernels::broadcast_shape(*batch, leading(v)) : batch;
  if (!all)
    fail(ErrorKind::shape, kSdpa, ": leading dimensions do not broadcast: expected equal extents or 1, got ", q, ", ",
         k, " and ", v);
  const Shape shape = batch->concat({q.back(1), k.back(1)});
  if (mask.defined()) {
    if (settings.is_causal)
      fail(ErrorKind::config, kSdpa, ": is_causal is a mask itself: expected no attn_mask beside it, got ",
           mask.shape());
    check_mask_type(kSdpa, "attn_mask", mask, query.dtype());
    const auto both = kernels::broadcast_shape(shape, mask.shape());
    if (!both || !(*both == shape))
      fail_extent(kSdpa, "attn_mask does not repeat to the scores", to_string(shape), mask.shape());
  }
  const double p = settings.dropout_p;
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::config, kSdpa, ": dropout_p is no probability: expected 0 to 1, got ", p);
  return shape;
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, const AttentionSettings& settings) {
  const Shape shape = check_sdpa(query, key, value, attn_mask, settings);
  Tensor mask = attn_mask.defined() ? added_mask(attn_mask, true, query.dtype()) : Tensor();
  if (settings.is_causal) mask = causal_mask(shape.back(1), shape.back(), query.dtype());
  const Tensor weights =
      masked_softmax(attention_scores(query, key, settings.scale.value_or(default_scale(query.shape().back())), mask));
  return matmul(dropout(weights, settings.dropout_p, true), value);
}

}  // namespace functional

}  // namespace taper::nn
