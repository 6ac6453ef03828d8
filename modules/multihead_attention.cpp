#include <cmath>

#include "attention.hpp"
#include "base/checked.hpp"
#include "catalogue.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/dropout.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

// --- geometry ------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kMha = "multihead_attention";

struct AttentionGeometry {
  std::int64_t queries, keys, batch;
  bool batched, batch_first;

  /// [N, L, features] as the caller has it.
  Shape outside(std::int64_t length, std::int64_t features) const {
    if (!batched) return {length, features};
    return batch_first ? Shape{batch, length, features} : Shape{length, batch, features};
  }
  std::string text(const char* length, std::int64_t features) const {
    if (!batched) return cat('[', length, ", ", features, ']');
    return batch_first ? cat("[N, ", length, ", ", features, ']') : cat('[', length, ", N, ", features, ']');
  }
};

struct Widths {
  std::int64_t embed, key, value;
};

Widths widths_of(const MultiheadAttentionOptions& o) {
  return {*o.embed_dim, o.kdim.value_or(*o.embed_dim), o.vdim.value_or(*o.embed_dim)};
}

bool has_own_projections(const MultiheadAttentionOptions& o) {
  const Widths w = widths_of(o);
  return w.key != w.embed || w.value != w.embed;
}

std::int64_t appended_keys(const MultiheadAttentionOptions& o) {
  return std::int64_t{o.add_bias_kv} + std::int64_t{o.add_zero_attn};
}

void check_heads(const MultiheadAttentionOptions& o) {
  if (o.num_heads < 1) fail(ErrorKind::config, kMha, ": num_heads must be positive: expected >= 1, got ", o.num_heads);
  if (*o.embed_dim % o.num_heads != 0)
    fail(ErrorKind::config, kMha, ": num_heads does not divide embed_dim: expected a divisor of ", *o.embed_dim,
         ", got ", o.num_heads);
}

void check_rank(const Shape& query) {
  if (query.rank() != 2 && query.rank() != 3)
    fail(ErrorKind::shape, kMha, ": wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got ",
         query.rank(), "-D ", query);
}

/// Refuses shapes that do not belong together.
AttentionGeometry geometry_of(const MultiheadAttentionOptions& o, const Shape& query, const Shape& key,
                              const Shape& value) {
  check_rank(query);
  const int rank = query.rank();
  const struct {
    const char* name;
    const Shape& shape;
  } others[] = {{"key", key}, {"value", value}};
  for (const auto& [name, shape] : others)
    if (shape.rank() != rank)
      fail(ErrorKind::shape, kMha, ": ", name, " has another number of dimensions than query: expected ", rank,
           "-D, got ", shape.rank(), "-D ", shape);
  const bool batched = rank == 3, first = batched && o.batch_first;
  const int length = first ? 1 : 0;
  const AttentionGeometry g{query[length], key[length], batched ? query[first ? 0 : 1] : 1, batched, first};
  const Widths w = widths_of(o);
  if (query.back() != w.embed) fail_extent(kMha, "query does not fit embed_dim", g.text("L", w.embed), query);
  const Shape expected_key = g.outside(g.keys, w.key), expected_value = g.outside(g.keys, w.value);
  if (!(key == expected_key)) fail_extent(kMha, "key does not fit kdim and the query", to_string(expected_key), key);
  if (!(value == expected_value))
    fail_extent(kMha, "value does not fit vdim and the key", to_string(expected_value), value);
  return g;
}

void check_key_padding_mask(const AttentionGeometry& g, const Shape& mask) {
  const Shape expected = g.batched ? Shape{g.batch, g.keys} : Shape{g.keys};
  if (!(mask == expected)) fail_extent(kMha, "key_padding_mask does not fit the key", to_string(expected), mask);
}

void check_attn_mask(const AttentionGeometry& g, std::int64_t heads, const Shape& mask) {
  const Shape flat{g.queries, g.keys};
  const Shape deep = Shape{checked::mul(g.batch, heads).value_or(-1)}.concat(flat);  // a negative extent is refused
  if (!(mask == flat) && !(mask == deep))
    fail_extent(kMha, "attn_mask does not fit query and key", cat(flat, " or ", deep), mask);
}

/// As far as the shapes are known before the data: the first extent of any input is a placeholder.
void check_mask_outline(const MultiheadAttentionOptions& o, const AttentionGeometry& g, bool padding,
                        const Shape& mask) {
  const int rank = g.batched ? 2 : 1;
  const bool fits = padding ? mask.rank() == rank : mask.rank() == 2 || mask.rank() == 3;
  const bool keys_known = g.batch_first && mask.rank() > 1;
  if (fits && (!keys_known || mask.back() == g.keys)) return;
  const std::string keys = g.batch_first ? cat(g.keys) : "S";
  fail_extent(kMha, padding ? "key_padding_mask does not fit the key" : "attn_mask does not fit query and key",
              padding ? cat(g.batched ? "[N, " : "[", keys, ']')
                      : cat("[L, ", keys, "] or [N * ", o.num_heads, ", L, ", keys, ']'),
              mask);
}

// --- the layer's parts ----------------------------------------------------------------------------------------------

/// [N, heads, L, size] from the projected [.., heads * size].
Tensor split_heads(const AttentionGeometry& g, const Tensor& x, std::int64_t length, std::int64_t heads) {
  const std::int64_t size = x.shape().back() / heads;
  if (g.batch_first) return x.reshape({g.batch, length, heads, size}).permute({0, 2, 1, 3});
  return x.reshape({length, g.batch, heads, size}).permute({1, 2, 0, 3});
}

/// The way back: [.., heads * size] as the caller has it.
Tensor join_heads(const AttentionGeometry& g, const Tensor& x) {
  const Tensor together = g.batch_first ? x.permute({0, 2, 1, 3}) : x.permute({2, 0, 1, 3});
  const Shape shape = g.outside(g.queries, x.size(1) * x.size(3));
  return reshape(together, {shape.begin(), shape.end()});
}

struct Projected {
  Tensor query, key, value;
};

/// Part i of three of a weight or bias that holds them one after another.
Tensor third(const Tensor& all, std::int64_t i) {
  if (!all.defined()) return all;
  const std::int64_t n = all.size(0) / 3;
  return all.narrow(0, i * n, n);
}

Projected project(const MultiheadAttention& m, const Tensor& query, const Tensor& key, const Tensor& value) {
  using functional::linear;
  if (!m.in_proj_weight.defined())
    return {linear(query, m.q_proj_weight, third(m.in_proj_bias, 0)),
            linear(key, m.k_proj_weight, third(m.in_proj_bias, 1)),
            linear(value, m.v_proj_weight, third(m.in_proj_bias, 2))};
  if (query.impl() == key.impl() && key.impl() == value.impl()) {
    const Tensor all = linear(query, m.in_proj_weight, m.in_proj_bias);
    const std::int64_t n = all.shape().back() / 3;
    return {all.narrow(-1, 0, n), all.narrow(-1, n, n), all.narrow(-1, 2 * n, n)};
  }
  const auto part = [&](const Tensor& x, std::int64_t i) {
    return linear(x, third(m.in_proj_weight, i), third(m.in_proj_bias, i));
  };
  return {part(query, 0), part(key, 1), part(value, 2)};
}

/// Keys or values with the learned one and the one of zeros behind them.
Tensor append(const AttentionGeometry& g, const Tensor& x, const Tensor& learned, bool zero) {
  Tensor parts[3] = {x};
  std::size_t count = 1;
  const std::int64_t heads = x.size(1), size = x.size(3);
  if (learned.defined()) parts[count++] = learned.reshape({1, heads, 1, size}).expand({g.batch, heads, 1, size});
  if (zero) parts[count++] = zeros({g.batch, heads, 1, size}, x.dtype());
  return count == 1 ? x : cat(std::span(parts, count), 2);
}

Tensor joined(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

/// What is added to the scores [N, heads, L, S]; undefined when nothing is. Appended keys are always seen.
Tensor merged_mask(const MultiheadAttentionOptions& o, const AttentionGeometry& g, const AttentionArguments& arguments,
                   DType dtype) {
  Tensor mask;
  if (o.is_causal) mask = causal_mask(g.queries, g.keys, dtype);
  if (arguments.attn_mask.defined()) {
    const Tensor own = added_mask(arguments.attn_mask, false, dtype);
    mask = joined(mask, own.dim() == 2 ? own : own.reshape({g.batch, o.num_heads, g.queries, g.keys}));
  }
  if (arguments.key_padding_mask.defined())
    mask = joined(mask, added_mask(arguments.key_padding_mask, false, dtype).reshape({g.batch, 1, 1, g.keys}));
  const std::int64_t more = appended_keys(o);
  return mask.defined() && more > 0 ? pad(mask, {0, more}) : mask;
}

/// Uniform in the bound of Glorot and Bengio (2010).
Tensor xavier_uniform(std::int64_t rows, std::int64_t columns) {
  const double bound = std::sqrt(6 / (double(rows) + double(columns)));
  return uniform({rows, columns}, -bound, bound);
}

std::int64_t known_embed_dim(const MultiheadAttentionOptions& o) {
  const std::int64_t embed = given(kMha, "embed_dim", o.embed_dim);
  check_heads(o);
  return embed;
}

/// Query, key, value and the masks among the inputs of a layer.
struct Inputs {
  Tensor query, key, value;
  AttentionArguments arguments;
};

void check_count(std::size_t inputs) {
  if (inputs == 1 || (inputs >= 3 && inputs <= 5)) return;
  fail(ErrorKind::config, MultiheadAttentionOptions::kType,
       ": takes the query alone, or query, key and value and up to two masks: expected 1 or 3 to 5 inputs, got ",
       inputs);
}

Inputs inputs_of(std::span<const Tensor> inputs, bool need_weights) {
  check_count(inputs.size());
  if (inputs.size() == 1) return {inputs[0], inputs[0], inputs[0], {.need_weights = need_weights}};
  return {inputs[0],
          inputs[1],
          inputs[2],
          {.key_padding_mask = inputs.size() > 3 ? inputs[3] : Tensor(),
           .need_weights = need_weights,
           .attn_mask = inputs.size() > 4 ? inputs[4] : Tensor()}};
}

}  // namespace

// --- layer ----------------------------------------------------------------------------------------------------------

MultiheadAttention::MultiheadAttention(MultiheadAttentionOptions options)
    : Layer(options),
      out_proj(
          {.in_features = known_embed_dim(options), .out_features = known_embed_dim(options), .bias = options.bias}) {
  const Widths w = widths_of(options);
  if (has_own_projections(options)) {
    q_proj_weight = xavier_uniform(w.embed, w.embed);
    k_proj_weight = xavier_uniform(w.embed, w.key);
    v_proj_weight = xavier_uniform(w.embed, w.value);
  } else {
    in_proj_weight = xavier_uniform(checked::mul(3, w.embed).value_or(-1), w.embed);  // a negative extent is refused
  }
  if (options.bias) {
    in_proj_bias = zeros({3 * w.embed});
    const NoGradGuard no_grad;
    out_proj.bias.zero_();
  }
  if (options.add_bias_kv) {
    const double deviation = 1 / std::sqrt(double(w.embed));
    bias_k = randn({1, 1, w.embed}) * deviation;
    bias_v = randn({1, 1, w.embed}) * deviation;
  }
  register_parameter("in_proj_weight", in_proj_weight);
  register_parameter("q_proj_weight", q_proj_weight);
  register_parameter("k_proj_weight", k_proj_weight);
  register_parameter("v_proj_weight", v_proj_weight);
  register_parameter("in_proj_bias", in_proj_bias);
  register_parameter("bias_k", bias_k);
  register_parameter("bias_v", bias_v);
  register_module("out_proj", out_proj);
}

AttentionResult MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                           const AttentionArguments& arguments) {
  for (const Tensor* x : {&query, &key, &value}) check_floating(kMha, x->dtype());
  const AttentionGeometry g = geometry_of(options_, query.shape(), key.shape(), value.shape());
  const std::int64_t heads = options_.num_heads;
  if (arguments.key_padding_mask.defined()) {
    check_key_padding_mask(g, arguments.key_padding_mask.shape());
    check_mask_type(kMha, "key_padding_mask", arguments.key_padding_mask, query.dtype());
  }
  if (arguments.attn_mask.defined()) {
    check_attn_mask(g, heads, arguments.attn_mask.shape());
    check_mask_type(kMha, "attn_mask", arguments.attn_mask, query.dtype());
  }
  const Projected p = project(*this, query, key, value);
  const Tensor q = split_heads(g, p.query, g.queries, heads);
  const Tensor k = append(g, split_heads(g, p.key, g.keys, heads), bias_k, options_.add_zero_attn);
  const Tensor v = append(g, split_heads(g, p.value, g.keys, heads), bias_v, options_.add_zero_attn);
  const Tensor s = attention_scores(q, k, default_scale(q.size(3)), merged_mask(options_, g, arguments, query.dtype()));
  Tensor weights = arguments.need_weights ? softmax(s, -1) : masked_softmax(s);
  weights = functional::dropout(weights, options_.dropout, is_training());
  AttentionResult result{out_proj(join_heads(g, matmul(weights, v))), {}};
  if (!arguments.need_weights) return result;
  result.weights = arguments.average_attn_weights ? weights.mean(1) : weights;
  if (!g.batched) result.weights = result.weights.squeeze(0);
  return result;
}

Tensor MultiheadAttention::forward(const Tensor& x) { return attend(x, x, x, {.need_weights = false}).output; }

Tensor MultiheadAttention::forward_all(std::span<const Tensor> inputs) {
  const Inputs in = inputs_of(inputs, false);
  return attend(in.query, in.key, in.value, in.arguments).output;
}

std::vector<Tensor> MultiheadAttention::forward_outputs(std::span<const Tensor> inputs) {
  const Inputs in = inputs_of(inputs, true);
  const AttentionResult result = attend(in.query, in.key, in.value, in.arguments);
  return {result.output, result.weights};
}

std::vector<std::string> MultiheadAttention::further_outputs(const Options&) { return {"attn_weights"}; }

Shape MultiheadAttention::infer(Options& options, std::span<const Shape> inputs) {
  check_count(inputs.size());
  const Shape& query = inputs[0];
  check_rank(query);
  complete_option(kMha, "embed_dim", options.embed_dim, query.back(), query);
  check_heads(options);
  const bool alone = inputs.size() == 1;
  const AttentionGeometry g = geometry_of(options, query, alone ? query : inputs[1], alone ? query : inputs[2]);
  for (std::size_t i = 3; i < inputs.size(); ++i) check_mask_outline(options, g, i == 3, inputs[i]);
  const Widths w = widths_of(options);
  // Refuses layers whose parameters cannot be counted.
  const Shape parameters[] = {{4, w.embed, w.embed}, {w.embed, w.key}, {w.embed, w.value}};
  (void)parameters;
  return query;
}

std::vector<Outline> MultiheadAttention::infer_further(const Options& options, std::span<const Shape> inputs) {
  const bool alone = inputs.size() == 1;
  const AttentionGeometry g =
      geometry_of(options, inputs[0], alone ? inputs[0] : inputs[1], alone ? inputs[0] : inputs[2]);
  const std::int64_t keys = g.keys + appended_keys(options);
  return {g.batched ? Shape{g.batch, g.queries, keys} : Shape{g.queries, keys}};
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(MultiheadAttentionOptions& o, FieldVisitor& visit) {
  visit({"embed_dim", "extent of the query's last dimension; null: inferred", kPositive}, o.embed_dim);
  visit({"num_heads", "attentions side by side, a divisor of embed_dim", kPositive, true}, o.num_heads);
  visit({"dropout", "probability of an attention weight to become 0 in training", kProbability}, o.dropout);
  visit({"bias", "add learned numbers in all projections"}, o.bias);
  visit({"add_bias_kv", "append a learned key and value to the sequence"}, o.add_bias_kv);
  visit({"add_zero_attn", "append a key and value of zeros to the sequence"}, o.add_zero_attn);
  visit({"kdim", "extent of the key's last dimension; null: embed_dim", kPositive}, o.kdim);
  visit({"vdim", "extent of the value's last dimension; null: embed_dim", kPositive}, o.vdim);
  visit({"batch_first", "the inputs are [N, L, ..]; else their first dimension is the sequence"}, o.batch_first);
  visit({"is_causal", "query i sees the keys 0 to i alone"}, o.is_causal);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_attention_layers(std::vector<LayerType>& types) {
  add_layer<MultiheadAttention>(types,
                                "Attention of one sequence to itself or to another: [N, L, E] or query, key, "
                                "value -> [N, L, E] with batch_first.",
                                R"({"embed_dim": 6, "num_heads": 2, "batch_first": true})", {{2, 5, 6}}, 1, 5);
}

}  // namespace taper::nn
