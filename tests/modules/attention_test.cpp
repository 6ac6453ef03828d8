#include "taper/nn/attention.hpp"

#include <algorithm>
#include <cmath>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
namespace F = taper::nn::functional;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Attention of matrices by its definition, one number at a time; `added` may be empty.
std::vector<double> naive_attention(const Tensor& query, const Tensor& key, const Tensor& value, double scale,
                                    const std::vector<double>& added) {
  const std::int64_t l = query.size(0), s = key.size(0), e = query.size(1), v = value.size(1);
  const auto q = query.to_vector<double>(), k = key.to_vector<double>(), x = value.to_vector<double>();
  std::vector<double> out(std::size_t(l * v));
  for (std::int64_t i = 0; i < l; ++i) {
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t j = 0; j < s; ++j) {
      double dot = 0;
      for (std::int64_t c = 0; c < e; ++c) dot += q[std::size_t(i * e + c)] * k[std::size_t(j * e + c)];
      weights.push_back(std::exp(scale * dot + (added.empty() ? 0 : added[std::size_t(i * s + j)])));
      sum += weights.back();
    }
    for (std::int64_t c = 0; c < v; ++c)
      for (std::int64_t j = 0; j < s && sum > 0; ++j)
        out[std::size_t(i * v + c)] += weights[std::size_t(j)] / sum * x[std::size_t(j * v + c)];
  }
  return out;
}

struct Operands {
  Tensor query = test::spread({3, 2}), key = test::spread({5, 2}, 0.29), value = test::spread({5, 7}, 0.53);
};

template <class... Inputs>
Shape infer(nn::MultiheadAttentionOptions options, const Inputs&... inputs) {
  const std::vector<Shape> shapes = {inputs...};
  return nn::find_layer_type("MultiheadAttention")->infer(&options, shapes);
}

}  // namespace

TEST_CASE("attention of two keys is a weighted mean that one can work out by hand") {
  // Scores 0 and ln 3 / sqrt(1): the weights are 1/4 and 3/4.
  const Tensor query = tensor({{1.}}, DType::float64), key = tensor({{0.}, {std::log(3.0)}}, DType::float64);
  const Tensor value = tensor({{8., 4.}, {16., -4.}}, DType::float64);
  CHECK(test::relative_error(F::scaled_dot_product_attention(query, key, value).to_vector<double>(), {14, -2}) < 1e-15);
}

TEST_CASE("attention gives what its definition gives, with each mask and scale") {
  const Operands o;
  const double scale = 1 / std::sqrt(2.0);
  const auto check = [&](const Tensor& y, double by, const std::vector<double>& added) {
    CHECK(y.shape() == Shape{3, 7});
    CHECK(test::relative_error(y.to_vector<double>(), naive_attention(o.query, o.key, o.value, by, added)) < 1e-14);
  };
  check(F::scaled_dot_product_attention(o.query, o.key, o.value), scale, {});
  check(F::scaled_dot_product_attention(o.query, o.key, o.value, {}, {.scale = 0.3}), 0.3, {});
  const Tensor mask = test::spread({3, 5}, 0.71);
  check(F::scaled_dot_product_attention(o.query, o.key, o.value, mask), scale, mask.to_vector<double>());
  const Tensor seen = tensor({{1, 0, 1, 0, 2}, {0, 0, 0, 0, 1}, {1, 1, 0, 1, 1}});
  std::vector<double> added;
  for (const double s : seen.to_vector<double>()) added.push_back(s != 0 ? 0 : -kInf);
  check(F::scaled_dot_product_attention(o.query, o.key, o.value, seen), scale, added);
  std::vector<double> causal;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) causal.push_back(j <= i ? 0 : -kInf);
  check(F::scaled_dot_product_attention(o.query, o.key, o.value, {}, {.is_causal = true}), scale, causal);
}

TEST_CASE("attention repeats leading dimensions, and masks along them") {
  const Tensor query = test::spread({2, 3, 5, 7}), key = test::spread({3, 11, 7}, 0.29),
               value = test::spread({2, 1, 11, 13}, 0.53), mask = test::spread({2, 1, 1, 11}, 0.61);
  const Tensor y = F::scaled_dot_product_attention(query, key, value, mask);
  REQUIRE(y.shape() == Shape{2, 3, 5, 13});
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t h = 0; h < 3; ++h) {
      const Tensor alone =
          F::scaled_dot_product_attention(query.select(0, n).select(0, h), key.select(0, h),
                                          value.select(0, n).select(0, 0), mask.select(0, n).select(0, 0));
      CHECK(test::distance(y.select(0, n).select(0, h).to_vector<double>(), alone.to_vector<double>()) < 1e-14);
    }
}

TEST_CASE("attention has the gradients of its values, of the mask too") {
  const Operands o;
  for (const Tensor& x : {o.query, o.key, o.value}) x.requires_grad_();
  const Tensor mask = test::spread({5}, 0.71).requires_grad_();
  const auto report = autograd::gradcheck(
      [&](const std::vector<Tensor>& in) { return F::scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
      {o.query, o.key, o.value, mask});
  INFO(report.to_string());
  CHECK(report.ok);
}

TEST_CASE("a query that sees no key gives zeros and sends no gradient") {
  const Operands o;
  for (const Tensor& x : {o.query, o.key, o.value}) x.requires_grad_();
  const Tensor seen = tensor({{1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, {0, 1, 0, 1, 1}});
  const Tensor y = F::scaled_dot_product_attention(o.query, o.key, o.value, seen);
  CHECK(y.select(0, 1).to_vector<double>() == std::vector<double>(7, 0.0));
  y.sum().backward();
  CHECK(o.query.grad().select(0, 1).to_vector<double>() == std::vector<double>(2, 0.0));
  for (const Tensor& x : {o.query, o.key, o.value})
    for (const double g : x.grad().to_vector<double>()) CHECK(std::isfinite(g));
  const Tensor nan = full({1, 2}, NAN, DType::float64);  // a NaN is no mask
  for (const double v : F::scaled_dot_product_attention(nan, o.key, o.value).to_vector<double>()) CHECK(std::isnan(v));
}

TEST_CASE("attention over no keys gives zeros, over no queries nothing") {
  const Tensor none = F::scaled_dot_product_attention(ones({3, 2}), ones({0, 2}), ones({0, 7}));
  CHECK(none.to_vector<float>() == std::vector<float>(21, 0.F));
  CHECK(F::scaled_dot_product_attention(ones({0, 2}), ones({5, 2}), ones({5, 7})).shape() == Shape{0, 7});
}

TEST_CASE("dropout of attention weights drops some, scales the others, and follows its own stream") {
  const Tensor query = zeros({1, 2}), key = ones({101, 2}), value = eye(101);
  manual_seed(5);
  const auto once = F::scaled_dot_product_attention(query, key, value, {}, {.dropout_p = 0.5}).to_vector<float>();
  manual_seed(5);
  CHECK(F::scaled_dot_product_attention(query, key, value, {}, {.dropout_p = 0.5}).to_vector<float>() == once);
  const auto zero = std::count(once.begin(), once.end(), 0.0f);
  CHECK(zero > 30);
  CHECK(zero < 70);
  CHECK(*std::max_element(once.begin(), once.end()) == Approx(2.0 / 101));
}

TEST_CASE("scaled_dot_product_attention names what does not fit") {
  const Tensor q = ones({2, 3, 5}), k = ones({2, 7, 5}), v = ones({2, 7, 11});
  const auto f = [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask = {},
                    const nn::AttentionSettings& s = {}) {
    return F::scaled_dot_product_attention(query, key, value, mask, s);
  };
  const std::string at = "scaled_dot_product_attention: ";
  CHECK_THROWS_WITH(f(ones({5}), k, v), at + "query has too few dimensions: expected at least 2, got [5]");
  CHECK_THROWS_WITH(f(q, k, ones({7})), at + "value has too few dimensions: expected at least 2, got [7]");
  CHECK_THROWS_WITH(f(q, ones({2, 7, 4}), v), at + "key does not fit the query: expected [.., S, 5], got [2, 7, 4]");
  CHECK_THROWS_WITH(f(q, k, ones({2, 5, 11})), at + "value does not fit the key: expected [.., 7, V], got [2, 5, 11]");
  CHECK_THROWS_WITH(f(q, ones({3, 7, 5}), v),
                    at + "leading dimensions do not broadcast: expected equal extents or 1, got [2, 3, 5], [3, 7, 5] "
                         "and [2, 7, 11]");
  CHECK_THROWS_WITH(f(q, k, ones({3, 7, 11})),
                    at + "leading dimensions do not broadcast: expected equal extents or 1, got [2, 3, 5], [2, 7, 5] "
                         "and [3, 7, 11]");
  CHECK_THROWS_WITH(f(q, k, v, ones({7, 3})),
                    at + "attn_mask does not repeat to the scores: expected [2, 3, 7], got [7, 3]");
  CHECK_THROWS_WITH(f(q, k, v, ones({4, 1, 1, 1})),
                    at + "attn_mask does not repeat to the scores: expected [2, 3, 7], got [4, 1, 1, 1]");
  CHECK_THROWS_WITH(f(q, k, v, ones({3, 7}), {.is_causal = true}),
                    at + "is_causal is a mask itself: expected no attn_mask beside it, got [3, 7]");
  CHECK_THROWS_WITH(
      f(q, k, v, ones({3, 7}, DType::float64)),
      at + "attn_mask has another element type: expected float32 or int64, got float64; convert with to()");
  CHECK_THROWS_WITH(f(q, k, ones({2, 7, 11}, DType::float64)),
                    at + "element types differ: expected float32, got float64 in value; convert with to()");
  CHECK_THROWS_WITH(f(ones({2, 3, 5}, DType::int64), k, v),
                    at + "element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(f(q, k, v, {}, {.dropout_p = 1.5}), at + "dropout_p is no probability: expected 0 to 1, got 1.5");
}

TEST_CASE("MultiheadAttention has the gradients of its values under every option") {
  const Tensor query = test::spread({3, 2, 4}).requires_grad_(), key = test::spread({5, 2, 3}, 0.29).requires_grad_(),
               value = test::spread({5, 2, 7}, 0.53).requires_grad_();
  const Tensor padding = test::spread({2, 5}, 0.61).requires_grad_(),
               mask = test::spread({4, 3, 5}, 0.83).requires_grad_();
  for (const bool appended : {false, true})
    for (const bool average : {false, true}) {
      manual_seed(3);
      nn::MultiheadAttention m({.embed_dim = 4,
                                .num_heads = 2,
                                .add_bias_kv = appended,
                                .add_zero_attn = appended,
                                .kdim = 3,
                                .vdim = 7,
                                .is_causal = average});
      m.to(DType::float64);
      std::vector<Tensor> leaves = m.parameters();
      leaves.insert(leaves.end(), {query, key, value, padding, mask});
      const auto report = autograd::gradcheck(
          [&](const std::vector<Tensor>&) {
            const auto r = m.attend(query, key, value,
                                    {.key_padding_mask = padding, .attn_mask = mask, .average_attn_weights = average});
            return cat({r.output.flatten(), r.weights.flatten()});
          },
          leaves);
      INFO(report.to_string());
      CHECK(report.ok);
    }
}

TEST_CASE("MultiheadAttention gives weights of each head, their mean, or none") {
  manual_seed(4);
  nn::MultiheadAttention m({.embed_dim = 6, .num_heads = 2, .batch_first = true});
  const Tensor x = uniform({3, 5, 6}, -1, 1);
  const auto heads = m.attend(x, x, x, {.average_attn_weights = false}), mean = m.attend(x, x, x),
             none = m.attend(x, x, x, {.need_weights = false});
  CHECK(heads.weights.shape() == Shape{3, 2, 5, 5});
  CHECK(mean.weights.shape() == Shape{3, 5, 5});
  CHECK_FALSE(none.weights.defined());
  CHECK(test::same_bits(mean.weights.to_vector<float>(), heads.weights.mean(1).to_vector<float>()));
  CHECK(test::same_bits(none.output.to_vector<float>(), mean.output.to_vector<float>()));
  CHECK(test::same_bits(m(x).to_vector<float>(), mean.output.to_vector<float>()));
  for (const float sum : heads.weights.sum(-1).to_vector<float>()) CHECK(sum == Approx(1));
  const Tensor alone = x.select(0, 1);
  CHECK(m.attend(alone, alone, alone).weights.shape() == Shape{5, 5});
  CHECK(m.attend(alone, alone, alone, {.average_attn_weights = false}).weights.shape() == Shape{2, 5, 5});
}

TEST_CASE("MultiheadAttention of three equal tensors is self-attention") {
  manual_seed(4);
  nn::MultiheadAttention m({.embed_dim = 6, .num_heads = 3});
  const Tensor x = uniform({5, 2, 6}, -1, 1), same[] = {x, clone(x), clone(x)};
  CHECK(test::distance(m.forward_all(same).to_vector<float>(), m(x).to_vector<double>()) < 1e-6);
}

TEST_CASE("a query without any key gives NaN beside weights and the projected zeros without, as in PyTorch") {
  manual_seed(4);
  nn::MultiheadAttention m({.embed_dim = 6, .num_heads = 2, .batch_first = true});
  const Tensor x = uniform({2, 3, 6}, -1, 1), unseen = tensor({{0, 0, 0}, {1, 1, 1}});
  const auto with = m.attend(x, x, x, {.key_padding_mask = unseen});
  const auto without = m.attend(x, x, x, {.key_padding_mask = unseen, .need_weights = false});
  for (const float v : with.output.select(0, 1).to_vector<float>()) CHECK(std::isnan(v));
  for (const float v : with.output.select(0, 0).to_vector<float>()) CHECK(std::isfinite(v));
  CHECK(without.output.select(0, 1).to_vector<float>() == std::vector<float>(18, 0.F));
}

TEST_CASE("MultiheadAttention starts as PyTorch's, under its names") {
  manual_seed(8);
  const nn::MultiheadAttention m({.embed_dim = 16, .num_heads = 2, .add_bias_kv = true});
  std::vector<std::string> names;
  for (const auto& p : m.named_parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight",
                                          "out_proj.bias"});
  const auto bound_of = [](const Tensor& w) { return w.abs().max().item(); };
  const double packed = std::sqrt(6.0 / 64);
  CHECK(bound_of(m.in_proj_weight) <= packed);
  CHECK(bound_of(m.in_proj_weight) > packed * 0.97);
  CHECK(bound_of(m.in_proj_bias) == 0);
  CHECK(bound_of(m.out_proj.bias) == 0);
  CHECK(m.out_proj.bias.requires_grad());
  CHECK(bound_of(m.out_proj.weight) <= 0.25);
  CHECK(bound_of(m.out_proj.weight) > 0.23);
  CHECK(m.bias_k.shape() == Shape{1, 1, 16});
  CHECK(taper::std(m.bias_k.flatten(), 0).item() == Approx(0.25).margin(0.12));
  const nn::MultiheadAttention own({.embed_dim = 6, .num_heads = 2, .bias = false, .kdim = 5});
  names.clear();
  for (const auto& p : own.named_parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"});
  CHECK(own.k_proj_weight.shape() == Shape{6, 5});
  CHECK(bound_of(own.k_proj_weight) <= std::sqrt(6.0 / 11));
  CHECK(own.to_string() ==
        "MultiheadAttention(embed_dim=6, num_heads=2, dropout=0.0, bias=false, add_bias_kv=false, add_zero_attn=false, "
        "kdim=5, vdim=null, batch_first=false, is_causal=false\n  (out_proj): Linear(in_features=6, out_features=6, "
        "bias=false)\n)");
}

TEST_CASE("dropout of MultiheadAttention acts in training alone") {
  manual_seed(4);
  nn::MultiheadAttention m({.embed_dim = 6, .num_heads = 2, .dropout = 0.5});
  const Tensor x = uniform({7, 2, 6}, -1, 1);
  CHECK(m(x).to_vector<float>() != m(x).to_vector<float>());
  m.eval();
  CHECK(m(x).to_vector<float>() == m(x).to_vector<float>());
}

TEST_CASE("MultiheadAttention names what does not fit") {
  nn::MultiheadAttention m({.embed_dim = 6, .num_heads = 2, .kdim = 5, .vdim = 7});
  nn::MultiheadAttention first({.embed_dim = 6, .num_heads = 2, .kdim = 5, .vdim = 7, .batch_first = true});
  const Tensor q = ones({3, 2, 6}), k = ones({11, 2, 5}), v = ones({11, 2, 7});
  const std::string at = "multihead_attention: ";
  CHECK_THROWS_WITH(m(ones({6})),
                    at + "wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 1-D [6]");
  CHECK_THROWS_WITH(m.attend(q, ones({11, 5}), v),
                    at + "key has another number of dimensions than query: expected 3-D, got 2-D [11, 5]");
  CHECK_THROWS_WITH(m.attend(q, k, ones({1, 11, 2, 7})),
                    at + "value has another number of dimensions than query: expected 3-D, got 4-D [1, 11, 2, 7]");
  CHECK_THROWS_WITH(m.attend(ones({3, 2, 4}), k, v),
                    at + "query does not fit embed_dim: expected [L, N, 6], got [3, 2, 4]");
  CHECK_THROWS_WITH(first.attend(ones({2, 3, 4}), k, v),
                    at + "query does not fit embed_dim: expected [N, L, 6], got [2, 3, 4]");
  CHECK_THROWS_WITH(m.attend(ones({3, 4}), ones({11, 5}), ones({11, 7})),
                    at + "query does not fit embed_dim: expected [L, 6], got [3, 4]");
  CHECK_THROWS_WITH(m.attend(q, ones({11, 2, 6}), v),
                    at + "key does not fit kdim and the query: expected [11, 2, 5], got [11, 2, 6]");
  CHECK_THROWS_WITH(m.attend(q, ones({11, 3, 5}), v),
                    at + "key does not fit kdim and the query: expected [11, 2, 5], got [11, 3, 5]");
  CHECK_THROWS_WITH(m.attend(q, k, ones({13, 2, 7})),
                    at + "value does not fit vdim and the key: expected [11, 2, 7], got [13, 2, 7]");
  CHECK_THROWS_WITH(m.attend(q, k, v, {.key_padding_mask = zeros({11, 2})}),
                    at + "key_padding_mask does not fit the key: expected [2, 11], got [11, 2]");
  CHECK_THROWS_WITH(m.attend(q, k, v, {.attn_mask = zeros({11, 3})}),
                    at + "attn_mask does not fit query and key: expected [3, 11] or [4, 3, 11], got [11, 3]");
  CHECK_THROWS_WITH(m.attend(q, k, v, {.attn_mask = zeros({2, 3, 11})}),
                    at + "attn_mask does not fit query and key: expected [3, 11] or [4, 3, 11], got [2, 3, 11]");
  CHECK_THROWS_WITH(
      m.attend(q, k, v, {.attn_mask = zeros({3, 11}, DType::float64)}),
      at + "attn_mask has another element type: expected float32 or int64, got float64; convert with to()");
  CHECK_THROWS_WITH(
      m.attend(q, k, v, {.key_padding_mask = zeros({2, 11}, DType::float64)}),
      at + "key_padding_mask has another element type: expected float32 or int64, got float64; convert with to()");
  CHECK_THROWS_WITH(m(ones({3, 2, 6}, DType::int64)),
                    at + "element type not supported: expected float32 or float64, got int64; convert with to()");
  const Tensor two[] = {q, k};
  CHECK_THROWS_WITH(m.forward_all(two),
                    "MultiheadAttention: takes the query alone, or query, key and value and up to two masks: expected "
                    "1 or 3 to 5 inputs, got 2");
}

TEST_CASE("MultiheadAttention's constructor refuses what no input could make valid") {
  CHECK_THROWS_WITH(nn::MultiheadAttention({.embed_dim = 7, .num_heads = 2}),
                    "multihead_attention: num_heads does not divide embed_dim: expected a divisor of 7, got 2");
  CHECK_THROWS_WITH(nn::MultiheadAttention({.embed_dim = 6, .num_heads = 0}),
                    "MultiheadAttention: num_heads is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::MultiheadAttention({.embed_dim = 6}),
                    "MultiheadAttention: num_heads is out of range: expected >= 1, got -1");
  CHECK_THROWS_WITH(nn::MultiheadAttention({.embed_dim = 0, .num_heads = 2}),
                    "MultiheadAttention: embed_dim is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::MultiheadAttention({.num_heads = 2}),
                    "multihead_attention: embed_dim is missing: expected a number, got none; only a model that knows "
                    "its input's shape can infer it");
  CHECK_THROWS_WITH(nn::MultiheadAttention({.embed_dim = 6, .num_heads = 2, .dropout = 1.5}),
                    "MultiheadAttention: dropout is out of range: expected <= 1, got 1.5");
  CHECK_THROWS_WITH(nn::MultiheadAttention({.embed_dim = 6, .num_heads = 2, .kdim = 0}),
                    "MultiheadAttention: kdim is out of range: expected >= 1, got 0");
}

TEST_CASE("MultiheadAttention infers embed_dim and refuses wrong shapes, from JSON too") {
  CHECK(infer({.num_heads = 2}, Shape{5, 3, 6}) == Shape{5, 3, 6});
  CHECK(infer({.num_heads = 2, .kdim = 5}, Shape{3, 2, 6}, Shape{11, 2, 5}, Shape{11, 2, 6}) == Shape{3, 2, 6});
  CHECK_THROWS_WITH(infer({.embed_dim = 4, .num_heads = 2}, Shape{1, 3, 6}),
                    "multihead_attention: embed_dim does not fit the input: expected 6, got 4 in [N, 3, 6]");
  CHECK_THROWS_WITH(infer({.num_heads = 4}, Shape{1, 3, 6}),
                    "multihead_attention: num_heads does not divide embed_dim: expected a divisor of 6, got 4");
  CHECK_THROWS_WITH(infer({.num_heads = 2}, Shape{1, 3, 6}, Shape{1, 3, 6}),
                    "MultiheadAttention: takes the query alone, or query, key and value and up to two masks: expected "
                    "1 or 3 to 5 inputs, got 2");
  CHECK_THROWS_WITH(infer({.num_heads = 2}, Shape{6}),
                    "multihead_attention: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got "
                    "1-D [6]");
  CHECK(test::json_error("MultiheadAttention", R"("num_heads": 4, "batch_first": true)", "[3, 6]") ==
        "error: /layers/0/num_heads (layer MultiheadAttention 0): multihead_attention: num_heads does not divide "
        "embed_dim: expected a "
        "divisor of 6, got 4; shapes: input [3, 6] -> MultiheadAttention");
  CHECK(test::json_error("MultiheadAttention", R"("num_heads": 0)", "[3, 6]") ==
        "error: /layers/0/num_heads (layer MultiheadAttention 0): expected >= 1, got 0");
  CHECK(test::json_error("MultiheadAttention", "", "[3, 6]") ==
        "error: /layers/0 (layer MultiheadAttention 0): missing key: expected num_heads, got none");
}

TEST_CASE("attention gives the same bits on any number of threads") {
  const Tensor q = to(test::spread({3, 67, 37}), DType::float32).requires_grad_(),
               k = to(test::spread({3, 71, 37}, 0.29), DType::float32).requires_grad_(),
               v = to(test::spread({3, 71, 41}, 0.53), DType::float32).requires_grad_();
  CHECK(test::same_on_any_threads([&] {
    for (const Tensor& x : {q, k, v}) x.zero_grad();
    const Tensor y = F::scaled_dot_product_attention(q, k, v, {}, {.is_causal = true});
    (y * y).sum().backward();
    return cat({y.flatten(), q.grad().flatten(), k.grad().flatten(), v.grad().flatten()}).to_vector<float>();
  }));
}

TEST_CASE("attention of a useful size keeps float32's accuracy") {
  const Tensor q = test::spread({67, 37}), k = test::spread({131, 37}, 0.29), v = test::spread({131, 41}, 0.53);
  const auto narrow = [](const Tensor& x) { return x.to(DType::float32); };
  const Tensor q32 = narrow(q), k32 = narrow(k), v32 = narrow(v);
  const auto wide = [](const Tensor& x) { return x.to(DType::float64); };
  const auto expected = naive_attention(wide(q32), wide(k32), wide(v32), 1 / std::sqrt(37.0), {});
  CHECK(test::relative_error(F::scaled_dot_product_attention(q32, k32, v32).to_vector<float>(), expected) < 1e-6);
}
