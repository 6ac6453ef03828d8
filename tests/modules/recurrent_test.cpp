#include "recurrent.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using kernels::RecurrentParams;

namespace {

struct RecurrentOperands {
  Tensor x = test::spread({5, 3, 2});
  nn::RecurrentWeights weights = {test::spread({20, 2}, 0.41), test::spread({20, 5}, 0.29), test::spread({20}, 0.61),
                                  test::spread({20}, 0.83)};
  Tensor h = test::spread({3, 5}, 0.19), c = test::spread({3, 5}, 0.23);
};

constexpr RecurrentParams kParams{kernels::RecurrentCell::lstm, false, false, 5, 3, 2, 5};

Tensor output_of(const RecurrentOperands& o) { return nn::run_recurrent(kParams, o.x, o.weights, o.h, o.c, {5, 3, 5}); }

}  // namespace

TEST_CASE("a recurrent operation differentiates each of its operands alone as it does all of them") {
  const RecurrentOperands all;
  const auto leaves = [](const RecurrentOperands& o) {
    return std::vector<Tensor>{o.x, o.weights.weight_ih, o.weights.weight_hh, o.h,
                               o.c, o.weights.bias_ih,   o.weights.bias_hh};
  };
  for (const Tensor& leaf : leaves(all)) leaf.requires_grad_();
  const Tensor dy = test::spread({5, 3, 5}, 0.97);
  output_of(all).backward(dy);
  for (std::size_t i = 0; i < 7; ++i) {
    const RecurrentOperands one;
    const Tensor leaf = leaves(one)[i].requires_grad_();
    output_of(one).backward(dy);
    INFO(i);
    CHECK(test::same_bits(leaf.grad().to_vector<double>(), leaves(all)[i].grad().to_vector<double>()));
  }
}

TEST_CASE("a recurrent operation can be differentiated twice where the graph is kept") {
  const RecurrentOperands o;
  o.weights.weight_hh.requires_grad_();
  const Tensor y = output_of(o), dy = ones({5, 3, 5}, DType::float64);
  y.backward(dy, true);
  const auto once = o.weights.weight_hh.grad().to_vector<double>();
  y.backward(dy);
  auto twice = once;
  for (double& v : twice) v *= 2;
  CHECK(o.weights.weight_hh.grad().to_vector<double>() == twice);
}

TEST_CASE("the last c follows the states in a result that has room for it") {
  const RecurrentOperands o;
  const Tensor y = output_of(o), packed = nn::run_recurrent(kParams, o.x, o.weights, o.h, o.c, {5 * 15 + 15});
  CHECK(packed.narrow(0, 0, 75).to_vector<double>() == y.flatten().to_vector<double>());
  const auto c = packed.narrow(0, 75, 15).to_vector<double>(), h = y.select(0, 4).flatten().to_vector<double>();
  for (std::size_t i = 0; i < c.size(); ++i) CHECK(std::abs(h[i]) <= std::abs(std::tanh(c[i])));
}

TEST_CASE("a saved weight that was changed in place is noticed by a recurrent operation") {
  const RecurrentOperands o;
  o.x.requires_grad_();
  const Tensor y = output_of(o);
  o.weights.weight_hh.mul_(2);
  CHECK_THROWS_AS(y.sum().backward(), Error);
}
