#include "taper/nn/attention.hpp"

#include <algorithm>
#include <cmath>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::kInf;
namespace F = taper::nn::functional;

namespace {

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

struct AttentionOperands {
  Tensor query = test::spread({3, 2}), key = test::spread({5, 2}, 0.29), value = test::spread({5, 7}, 0.53);
};

}  // namespace

TEST_CASE("attention of two keys is a weighted mean that one can work out by hand") {
  // Scores 0 and ln 3 / sqrt(1): the weights are 1/4 and 3/4.
  const Tensor query = tensor({{1.}}, DType::float64), key = tensor({{0.}, {std::log(3.0)}}, DType::float64);
  const Tensor value = tensor({{8., 4.}, {16., -4.}}, DType::float64);
  CHECK(test::relative_error(F::scaled_dot_product_attention(query, key, value).to_vector<double>(), {14, -2}) < 1e-15);
}

TEST_CASE("attention gives what its definition gives, with each mask and scale") {
  const AttentionOperands o;
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
  const AttentionOperands o;
  for (const Tensor& x : {o.query, o.key, o.value}) x.requires_grad_();
  const Tensor mask = test::spread({5}, 0.71).requires_grad_();
  const auto report = autograd::gradcheck(
      [&](const std::vector<Tensor>& in) { return F::scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
      {o.query, o.key, o.value, mask});
  INFO(report.to_string());
  CHECK(report.ok);
}

TEST_CASE("a query that sees no key gives zeros and sends no gradient") {
  const AttentionOperands o;
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
