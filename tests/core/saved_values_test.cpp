#include "support/catch.hpp"
#include "support/in_place.hpp"
#include "support/message_of.hpp"
#include "support/test_ops.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::InPlace;
using test::kInPlace;
using test::leaf;
using test::without_positions;

// Values that an operation saved for its gradient and that are changed in place before it.

namespace {

/// An operation that saves: `input` says whether its input (else its output) is what the gradient reads.
struct Saves {
  const char* op;
  bool input;
  Tensor (*run)(const Tensor&);
};

const Tensor kThree = tensor({1.5, 2.5, 3.5}, DType::float64);

const Saves kSaves[] = {
    {"mul", true, [](const Tensor& t) { return mul(t, t); }},
    {"div", true, [](const Tensor& t) { return div(kThree, t); }},
    {"pow", true, [](const Tensor& t) { return pow(t, kThree); }},
    {"pow_scalar", true, [](const Tensor& t) { return pow(t, 3.0); }},
    {"maximum", true, [](const Tensor& t) { return maximum(t, kThree); }},
    {"minimum", true, [](const Tensor& t) { return minimum(t, kThree); }},
    {"scalar_div", true, [](const Tensor& t) { return div(2.0, t); }},
    {"exp", false, [](const Tensor& t) { return exp(t); }},
    {"log", true, [](const Tensor& t) { return log(t); }},
    {"log1p", true, [](const Tensor& t) { return log1p(t); }},
    {"sqrt", false, [](const Tensor& t) { return sqrt(t); }},
    {"rsqrt", false, [](const Tensor& t) { return rsqrt(t); }},
    {"reciprocal", false, [](const Tensor& t) { return reciprocal(t); }},
    {"abs", true, [](const Tensor& t) { return abs(t); }},
    {"sin", true, [](const Tensor& t) { return sin(t); }},
    {"cos", true, [](const Tensor& t) { return cos(t); }},
    {"tanh", false, [](const Tensor& t) { return tanh(t); }},
    {"sigmoid", false, [](const Tensor& t) { return sigmoid(t); }},
    {"gelu", true, [](const Tensor& t) { return gelu(t); }},
    {"gelu_tanh", true, [](const Tensor& t) { return gelu(t, Gelu::tanh); }},
    {"silu", true, [](const Tensor& t) { return silu(t); }},
    {"softplus", true, [](const Tensor& t) { return softplus(t); }},
    {"clamp", true, [](const Tensor& t) { return clamp(t, 0, 5); }},
    {"var", true, [](const Tensor& t) { return var(t); }},
    {"std", true, [](const Tensor& t) { return taper::std(t); }},
    {"prod", true, [](const Tensor& t) { return prod(t); }},
    {"amax", true, [](const Tensor& t) { return max(t); }},
    {"amin", true, [](const Tensor& t) { return min(t); }},
    {"max", false, [](const Tensor& t) { return max(t, 0).indices; }},
    {"logsumexp", true, [](const Tensor& t) { return logsumexp(t, {}); }},
    {"norm", true, [](const Tensor& t) { return norm(t); }},
    {"softmax", false, [](const Tensor& t) { return softmax(t, 0); }},
    {"log_softmax", false, [](const Tensor& t) { return log_softmax(t, 0); }},
    {"matmul", true, [](const Tensor& t) { return matmul(t, t); }},
};

}  // namespace

TEST_CASE("every change in place of a value that any operation saved is noticed", "[fault-102]") {
  for (const Saves& saves : kSaves)
    for (const InPlace& in_place : kInPlace)
      for (const bool through_view : {false, true}) {
        if (std::string(saves.op) == "max") continue;  // its saved indices are tested below
        INFO(saves.op << " then " << in_place.name << (through_view ? " through a view" : ""));
        const Tensor x = leaf({1.25, 2.0, 0.75});
        const Tensor input = mul(x, 1.0);
        const Tensor output = saves.run(input);
        const Tensor saved = saves.input ? input : output;
        {
          const NoGradGuard no_grad;
          in_place.change(through_view ? saved.reshape({-1, 1}) : saved);
        }
        const std::string sentence = without_positions(test::message_of([&] { output.backward(ones_like(output)); }));
        const std::string expected = std::string("backward: a value that ") + saves.op +
                                     " (#N) saved was changed in place: expected version 0 of ";
        CHECK(sentence.substr(0, expected.size()) == expected);
        const std::string end = ", got 1; clone() it before the change";
        CHECK(sentence.substr(sentence.size() - std::min(end.size(), sentence.size())) == end);
        CHECK(!x.grad().defined());
      }
}

TEST_CASE("the sentence about a saved value names the operation, the value and both versions") {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor h = mul(x, 3.0), y = mul(h, h);
  h.add_(1);
  CHECK(without_positions(test::message_of([&] { sum(y).backward(); })) ==
        "backward: a value that mul (#N) saved was changed in place: expected version 0 of input 0, got 1; clone() it "
        "before the change");
  const auto top = max(h, 0);
  top.indices.zero_();
  CHECK(without_positions(test::message_of([&] { top.values.backward(); })) ==
        "backward: a value that max (#N) saved was changed in place: expected version 0 of input 1, got 1; clone() it "
        "before the change");
}

TEST_CASE("a view made before a recorded change in place is not taken for what it was") {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor h = mul(x, 1.0), view = h.reshape({2, 1});
  h.mul_(3);
  CHECK(test::message_of([&] { mul(view, 2.0); }) ==
        "mul_scalar: an input was changed in place through another view of its data: expected history 0, got 1; make "
        "the view after the change");
  sum(mul(h.reshape({2, 1}), 2.0)).backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{6, 6});
}
