#include "taper/nn/embedding.hpp"

#include <algorithm>

#include "catalogue.hpp"
#include "core/effect.hpp"
#include "kernels/embedding.hpp"
#include "kernels/index.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::EmbeddingParams;

namespace {

// --- records --------------------------------------------------------------------------------------------------------

struct Renorm {
  EmbeddingParams params;
  kernels::RowBound bound;
};

template <class T>
void embedding_forward(const ForwardArgs& args) {
  const auto& p = args.attributes_as<EmbeddingParams>();
  kernels::index_select(args.inputs[0].as<T>(), args.inputs[1].as<std::int64_t>(), args.output.as<T>(), 1, p.rows,
                        p.width, p.count);
}

template <class T>
void embedding_backward(const BackwardArgs& args) {
  const GradientSlot& dw = args.input_gradients[0];
  kernels::embedding_backward(args.attributes_as<EmbeddingParams>(), args.inputs[1].as<std::int64_t>(),
                              args.output_gradient.as<T>(), dw.as<T>(), dw.add);
}

constexpr Op kEmbedding{.name = "embedding",
                        .derivative = "dW[index] += dy",
                        .forward = {embedding_forward<float>, embedding_forward<double>, nullptr},
                        .backward = {embedding_backward<float>, embedding_backward<double>, nullptr},
                        .needs = {autograd::needs_input(1)}};

template <class T>
void renorm_forward(const ForwardArgs& args) {
  const auto& call = args.attributes_as<Renorm>();
  kernels::embedding_renorm(call.params, call.bound, args.inputs[1].as<std::int64_t>(), args.output.as<T>());
}

constexpr Op kRenorm{.name = "embedding_renorm",
                     .derivative = "none: changes the table outside the record",
                     .forward = {renorm_forward<float>, renorm_forward<double>, nullptr},
                     .backward = {}};

// --- checks ---------------------------------------------------------------------------------------------------------

/// The row counted from the front, -1 for none.
std::int64_t padding_row(const std::optional<std::int64_t>& padding_idx, std::int64_t rows) {
  if (!padding_idx) return -1;
  if (*padding_idx < -rows || *padding_idx >= rows)
    fail(ErrorKind::config, "embedding: padding_idx is no row of the table: expected ", -rows, " to ", rows - 1,
         ", got ", *padding_idx);
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

void check_max_norm(const std::optional<double>& max_norm) {
  if (max_norm && !(*max_norm >= 0))
    fail(ErrorKind::config, "embedding: max_norm is out of range: expected >= 0, got ", *max_norm);
}

/// "[1, 0, 3]": the coordinates of element `i`.
std::string place_of(std::int64_t i, const Shape& shape) {
  std::string text;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    text = cat(i % shape[d], text.empty() ? "" : ", ", text);
    i /= shape[d];
  }
  return cat('[', text, ']');
}

void check_rows(const ForwardArgs& args) {
  const std::int64_t rows = args.attributes_as<std::int64_t>();
  const auto& input = args.inputs[0];
  const auto* values = input.as<std::int64_t>();
  const std::int64_t bad = kernels::find_bad_index(values, input.numel, rows);
  if (bad >= 0) [[unlikely]]
    fail(ErrorKind::shape, "embedding: index out of range: expected 0 to ", rows - 1, ", got ", values[bad], " at ",
         place_of(bad, Shape(input.shape())));
}

void check_indices(const Tensor& input, std::int64_t rows) {
  detail::run_effect("check index", check_rows, {input}, {}, rows);
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options) {
  if (input.dtype() != DType::int64)
    fail(ErrorKind::type, "embedding: indices must be whole numbers: expected int64, got ", input.dtype());
  check_floating("embedding", weight.dtype());
  if (weight.dim() != 2)
    fail(ErrorKind::shape, "embedding: weight is no table: expected [num_embeddings, embedding_dim], got ",
         weight.shape());
  const std::int64_t rows = weight.shape()[0], width = weight.shape()[1];
  const std::int64_t padding = padding_row(options.padding_idx, rows);
  check_max_norm(options.max_norm);
  const Shape output = input.shape().concat({width});
  check_indices(input, rows);
  const EmbeddingParams params{rows, width, input.numel(), padding, options.scale_grad_by_freq};
  if (options.max_norm) {
    const NoGradGuard no_grad;
    const Renorm call{params, {*options.max_norm, options.norm_type}};
    const autograd::Input inputs[] = {weight, input};
    autograd::apply_in_place(kRenorm, inputs, &call, sizeof call);
  }
  return apply(kEmbedding, {weight, input}, output, weight.dtype(), params);
}

}  // namespace functional

// --- layer ----------------------------------------------------------------------------------------------------------

Embedding::Embedding(EmbeddingOptions options) : Layer(options) {
  const std::int64_t padding = padding_row(options.padding_idx, options.num_embeddings);
  weight = randn({options.num_embeddings, options.embedding_dim});
  if (padding >= 0) std::fill_n(weight.data<float>() + padding * options.embedding_dim, options.embedding_dim, 0.0f);
  register_parameter("weight", weight);
}

Tensor Embedding::forward(const Tensor& x) {
  return functional::embedding(x, weight,
                               {.padding_idx = options_.padding_idx,
                                .max_norm = options_.max_norm,
                                .norm_type = options_.norm_type,
                                .scale_grad_by_freq = options_.scale_grad_by_freq});
}

Shape Embedding::infer(Options& options, std::span<const Shape> inputs) {
  padding_row(options.padding_idx, options.num_embeddings);
  const Shape table{options.num_embeddings, options.embedding_dim};  // refuses a size beyond 63 bits
  return inputs[0].concat({table[1]});
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(EmbeddingOptions& o, FieldVisitor& visit) {
  visit({"num_embeddings", "rows of the table; indices are below it", kPositive, true}, o.num_embeddings);
  visit({"embedding_dim", "numbers in a row", kPositive, true}, o.embedding_dim);
  visit({"padding_idx", "a row that starts at 0 and gets no gradient; from the back when negative"}, o.padding_idx);
  visit({"max_norm", "rows that are read and longer are scaled down to it, in the table itself", kNonNegative},
        o.max_norm);
  visit({"norm_type", "p of the p-norm that max_norm bounds"}, o.norm_type);
  visit({"scale_grad_by_freq", "divides a row's gradient by how often the input names it"}, o.scale_grad_by_freq);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_embedding_layers(std::vector<LayerType>& types) {
  add_layer<Embedding>(types, "A learned row for each index: [*] -> [*, embedding_dim].",
                       R"({"num_embeddings": 3, "embedding_dim": 5})", {{2, 5}});
}

}  // namespace taper::nn
