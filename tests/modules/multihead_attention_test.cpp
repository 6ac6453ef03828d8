#include <cmath>

#include "support/catch.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/attention.hpp"
#include "taper/ops.hpp"

using namespace taper;

namespace {

template <class... Inputs>
Shape infer_attention(nn::MultiheadAttentionOptions options, const Inputs&... inputs) {
  const std::vector<Shape> shapes = {inputs...};
  return nn::find_layer_type("MultiheadAttention")->infer(&options, shapes);
}

}  // namespace

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
  CHECK(infer_attention({.num_heads = 2}, Shape{5, 3, 6}) == Shape{5, 3, 6});
  CHECK(infer_attention({.num_heads = 2, .kdim = 5}, Shape{3, 2, 6}, Shape{11, 2, 5}, Shape{11, 2, 6}) ==
        Shape{3, 2, 6});
  CHECK_THROWS_WITH(infer_attention({.embed_dim = 4, .num_heads = 2}, Shape{1, 3, 6}),
                    "multihead_attention: embed_dim does not fit the input: expected 6, got 4 in [N, 3, 6]");
  CHECK_THROWS_WITH(infer_attention({.num_heads = 4}, Shape{1, 3, 6}),
                    "multihead_attention: num_heads does not divide embed_dim: expected a divisor of 6, got 4");
  CHECK_THROWS_WITH(infer_attention({.num_heads = 2}, Shape{1, 3, 6}, Shape{1, 3, 6}),
                    "MultiheadAttention: takes the query alone, or query, key and value and up to two masks: expected "
                    "1 or 3 to 5 inputs, got 2");
  CHECK_THROWS_WITH(infer_attention({.num_heads = 2}, Shape{6}),
                    "multihead_attention: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got "
                    "1-D [6]");
  const nn::MultiheadAttentionOptions first{.num_heads = 2, .batch_first = true};
  const Shape q{1, 3, 6}, k{1, 5, 6};
  CHECK(infer_attention(first, q, k, k, Shape{1, 5}, Shape{1, 5}) == q);
  CHECK(infer_attention(first, q, k, k, Shape{1, 5}, Shape{1, 3, 5}) == q);
  CHECK_THROWS_WITH(infer_attention(first, q, k, k, Shape{1, 7}),
                    "multihead_attention: key_padding_mask does not fit the key: expected [N, 5], got [1, 7]");
  CHECK_THROWS_WITH(infer_attention(first, q, k, k, Shape{1, 5}, Shape{1, 7}),
                    "multihead_attention: attn_mask does not fit query and key: expected [L, 5] or [N * 2, L, 5], got "
                    "[1, 7]");
  CHECK_THROWS_WITH(infer_attention({.num_heads = 2}, q, q, q, Shape{1, 1, 7}),
                    "multihead_attention: key_padding_mask does not fit the key: expected [N, S], got [1, 1, 7]");
  CHECK(test::json_error("MultiheadAttention", R"("num_heads": 4, "batch_first": true)", "[3, 6]") ==
        "error: /layers/0/num_heads (layer MultiheadAttention 0): multihead_attention: num_heads does not divide "
        "embed_dim: expected a "
        "divisor of 6, got 4; shapes: input [3, 6] -> MultiheadAttention");
  CHECK(test::json_error("MultiheadAttention", R"("num_heads": 0)", "[3, 6]") ==
        "error: /layers/0/num_heads (layer MultiheadAttention 0): expected >= 1, got 0");
  CHECK(test::json_error("MultiheadAttention", "", "[3, 6]") ==
        "error: /layers/0 (layer MultiheadAttention 0): missing key: expected num_heads, got none");
}
