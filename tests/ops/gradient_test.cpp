#include <set>

#include "support/catch.hpp"
#include "support/linear_parts.hpp"
#include "support/matches.hpp"
#include "support/temp_folder.hpp"
#include "support/test_ops.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;

namespace {

using Inputs = std::vector<Tensor>;

/// Numbers of both signs, none near 0 or near another one, so that no kink lies within a stencil.
Tensor spread(const Shape& shape, double from = -1.9, double step = 0.37) {
  const Tensor x = empty(shape, DType::float64);
  const std::int64_t n = shape.numel();
  for (std::int64_t i = 0; i < n; ++i)
    x.data<double>()[i] = from + step * double(i * 7 % (n % 7 == 0 ? n + 1 : n)) + 0.013 * double(i);
  return x;
}
Tensor positive(const Shape& shape) { return spread(shape, 0.3, 0.21); }

struct Differentiable {
  const char* name;  ///< of the function in ops.hpp
  Tensor (*run)(const Inputs&);
  Inputs inputs;
};

std::vector<Differentiable> differentiable() {
  const Tensor x = spread({3, 5}), y = spread({3, 5}, -2.1, 0.43), p = positive({3, 5});
  const Tensor row = spread({5}), positive_row = positive({5}), column = spread({3, 1}, -0.7, 0.9);
  const Tensor cube = spread({2, 3, 5});
  return {
      {"add", [](const Inputs& in) { return add(in[0], in[1]); }, {x, row}},
      {"add", [](const Inputs& in) { return add(in[0], 2.5); }, {x}},
      {"sub", [](const Inputs& in) { return sub(in[0], in[1]); }, {column, x}},
      {"sub", [](const Inputs& in) { return sub(2.5, in[0]); }, {x}},
      {"mul", [](const Inputs& in) { return mul(in[0], in[1]); }, {x, column}},
      {"mul", [](const Inputs& in) { return mul(in[0], -1.5); }, {x}},
      {"div", [](const Inputs& in) { return div(in[0], in[1]); }, {x, positive_row}},
      {"div", [](const Inputs& in) { return div(in[0], -1.5); }, {x}},
      {"div", [](const Inputs& in) { return div(-1.5, in[0]); }, {p}},
      {"pow", [](const Inputs& in) { return pow(in[0], in[1]); }, {p, row}},
      {"pow", [](const Inputs& in) { return pow(in[0], 3); }, {x}},
      {"maximum", [](const Inputs& in) { return maximum(in[0], in[1]); }, {x, y}},
      {"minimum", [](const Inputs& in) { return minimum(in[0], in[1]); }, {x, y}},
      {"where", [](const Inputs& in) { return where(gt(in[0], 0.0), in[0], in[1]); }, {x, column}},
      {"neg", [](const Inputs& in) { return neg(in[0]); }, {x}},
      {"exp", [](const Inputs& in) { return exp(in[0]); }, {x}},
      {"log", [](const Inputs& in) { return log(in[0]); }, {p}},
      {"log1p", [](const Inputs& in) { return log1p(in[0]); }, {p}},
      {"sqrt", [](const Inputs& in) { return sqrt(in[0]); }, {p}},
      {"rsqrt", [](const Inputs& in) { return rsqrt(in[0]); }, {p}},
      {"reciprocal", [](const Inputs& in) { return reciprocal(in[0]); }, {p}},
      {"abs", [](const Inputs& in) { return abs(in[0]); }, {x}},
      {"sign", [](const Inputs& in) { return sign(in[0]); }, {x}},
      {"sin", [](const Inputs& in) { return sin(in[0]); }, {x}},
      {"cos", [](const Inputs& in) { return cos(in[0]); }, {x}},
      {"tanh", [](const Inputs& in) { return tanh(in[0]); }, {x}},
      {"sigmoid", [](const Inputs& in) { return sigmoid(in[0]); }, {x}},
      {"relu", [](const Inputs& in) { return relu(in[0]); }, {x}},
      {"leaky_relu", [](const Inputs& in) { return leaky_relu(in[0], 0.3); }, {x}},
      {"gelu", [](const Inputs& in) { return gelu(in[0]); }, {x}},
      {"gelu", [](const Inputs& in) { return gelu(in[0], Gelu::tanh); }, {x}},
      {"silu", [](const Inputs& in) { return silu(in[0]); }, {x}},
      {"elu", [](const Inputs& in) { return elu(in[0], 1.3); }, {x}},
      {"selu", [](const Inputs& in) { return selu(in[0]); }, {x}},
      {"softplus", [](const Inputs& in) { return softplus(in[0], 1.7, 3.0); }, {x}},
      {"clamp", [](const Inputs& in) { return clamp(in[0], -0.5, 1.1); }, {x}},
      {"clone", [](const Inputs& in) { return clone(in[0]); }, {x}},
      {"sum", [](const Inputs& in) { return sum(in[0]); }, {x}},
      {"sum",
       [](const Inputs& in) {
         return sum(in[0], {0, 2});
       },
       {cube}},
      {"mean", [](const Inputs& in) { return mean(in[0]); }, {x}},
      {"mean", [](const Inputs& in) { return mean(in[0], 1, true); }, {cube}},
      {"var",
       [](const Inputs& in) {
         return var(in[0], {0, 2});
       },
       {cube}},
      {"std", [](const Inputs& in) { return taper::std(in[0], 1, false, 0.5); }, {cube}},
      {"max", [](const Inputs& in) { return max(in[0]); }, {x}},
      {"max", [](const Inputs& in) { return max(in[0], 1).values; }, {cube}},
      {"min", [](const Inputs& in) { return min(in[0]); }, {x}},
      {"min", [](const Inputs& in) { return min(in[0], -1, true).values; }, {cube}},
      {"amax",
       [](const Inputs& in) {
         return amax(in[0], {0, 2});
       },
       {cube}},
      {"amin", [](const Inputs& in) { return amin(in[0], 1); }, {cube}},
      {"prod", [](const Inputs& in) { return prod(in[0]); }, {p}},
      {"prod", [](const Inputs& in) { return prod(in[0], 1); }, {cube}},
      {"logsumexp",
       [](const Inputs& in) {
         return logsumexp(in[0], {0, 2});
       },
       {cube}},
      {"norm", [](const Inputs& in) { return norm(in[0]); }, {x}},
      {"norm",
       [](const Inputs& in) {
         return norm(in[0], 3.0, {0, 2});
       },
       {cube}},
      {"softmax", [](const Inputs& in) { return softmax(in[0], 1); }, {cube}},
      {"log_softmax", [](const Inputs& in) { return log_softmax(in[0], -1); }, {cube}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1]); }, {x, spread({5, 2})}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1], true, true); }, {spread({5, 3}), spread({2, 5})}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1]); }, {spread({2, 1, 3, 5}), spread({4, 5, 2})}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1], false, true); }, {cube, spread({7, 5})}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1], true, false); }, {cube, spread({3, 2})}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1], true, true); }, {x, spread({2, 1, 7, 3})}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1]); }, {row, spread({2, 5, 3})}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1]); }, {cube, row}},
      {"matmul", [](const Inputs& in) { return matmul(in[0], in[1]); }, {row, spread({5}, 0.4, 0.3)}},
      {"reshape",
       [](const Inputs& in) {
         return reshape(in[0], {5, -1});
       },
       {x}},
      {"view", [](const Inputs& in) { return view(in[0], {15}); }, {x}},
      {"flatten", [](const Inputs& in) { return flatten(in[0], 1); }, {cube}},
      {"squeeze", [](const Inputs& in) { return squeeze(in[0]); }, {column}},
      {"unsqueeze", [](const Inputs& in) { return unsqueeze(in[0], 1); }, {x}},
      {"expand",
       [](const Inputs& in) {
         return expand(in[0], {2, 3, 5});
       },
       {column}},
      {"expand",
       [](const Inputs& in) {
         return expand(in[0], {1, 1, -1});
       },
       {row}},
      {"transpose", [](const Inputs& in) { return transpose(in[0], 0, 2); }, {cube}},
      {"permute",
       [](const Inputs& in) {
         return permute(in[0], {2, 0, 1});
       },
       {cube}},
      {"narrow", [](const Inputs& in) { return narrow(in[0], 1, 1, 2); }, {cube}},
      {"select", [](const Inputs& in) { return select(in[0], 1, -1); }, {cube}},
      {"index_select",
       [](const Inputs& in) {
         return index_select(in[0], 1, tensor({2, 0, 2, 2}));
       },
       {cube}},
      {"gather",
       [](const Inputs& in) {
         return gather(in[0], 1, tensor({{4, 4}, {0, 1}, {3, 2}}));
       },
       {x}},
      {"cat",
       [](const Inputs& in) {
         return cat({in[0], in[1], in[0]}, 1);
       },
       {x, column}},
      {"stack",
       [](const Inputs& in) {
         return stack({in[0], in[1]}, 1);
       },
       {x, y}},
      {"split", [](const Inputs& in) { return split(in[0], 2, 1)[1]; }, {x}},
      {"chunk", [](const Inputs& in) { return chunk(in[0], 2, 1)[1]; }, {x}},
      {"pad",
       [](const Inputs& in) {
         return pad(in[0], {1, -2, 2, 1}, PadMode::zeros, 3.0);
       },
       {x}},
      {"pad",
       [](const Inputs& in) {
         return pad(in[0], {2, 3}, PadMode::reflect);
       },
       {x}},
      {"pad",
       [](const Inputs& in) {
         return pad(in[0], {2, 3, 1, 2}, PadMode::replicate);
       },
       {x}},
      {"pad",
       [](const Inputs& in) {
         return pad(in[0], {5, 3}, PadMode::circular);
       },
       {x}},
      {"pad",
       [](const Inputs& in) {
         return pad(in[0], {-2, 3, 2, -1}, PadMode::circular);
       },
       {x}},
      {"pad",
       [](const Inputs& in) {
         return pad(in[0], {-2, 4, -1, 2}, PadMode::reflect);
       },
       {x}},
      {"to", [](const Inputs& in) { return to(to(mul(in[0], 1024.0), DType::float64), DType::float64); }, {x}},
  };
}

Inputs with_grad(const Inputs& inputs) {
  Inputs out;
  for (const Tensor& x : inputs) out.push_back(clone(x).requires_grad_());
  return out;
}

/// Names of the functions ops.hpp declares that return a tensor or several.
std::set<std::string> declared() {
  std::set<std::string> names;
  for (const auto& match : test::matches(slurp(std::string(TAPER_SOURCE_DIR) + "/include/taper/ops.hpp"),
                                         "^(Tensor|std::vector<Tensor>|ValuesAndIndices) ([a-z0-9_]+)\\("))
    names.insert(match.at(1));
  return names;
}

}  // namespace

TEST_CASE("the gradient of every operation agrees with a difference quotient") {
  for (const Differentiable& op : differentiable()) {
    const Inputs inputs = with_grad(op.inputs);
    INFO(op.name << " on " << to_string(inputs[0].shape()));
    const auto report = autograd::gradcheck(op.run, inputs, {.atol = 1e-8, .rtol = 1e-7});
    CHECK(report.to_string() == "gradient of " + report.op + " agrees");
  }
}

TEST_CASE("every operation that ops.hpp declares has a gradient check or is known to have no gradient") {
  std::set<std::string> names = declared();
  REQUIRE(names.size() > 60);
  for (const Differentiable& op : differentiable()) {
    INFO(op.name);
    CHECK(declared().count(op.name) == 1);
    names.erase(op.name);
  }
  CHECK(names == std::set<std::string>{"argmax", "argmin", "eq", "ge", "gt", "le", "lt", "ne"});
}

TEST_CASE("the gradient of every linear operation is its adjoint") {
  std::set<std::string> linear;
  for (const Differentiable& op : differentiable()) {
    const Inputs inputs = with_grad(op.inputs);
    INFO(op.name << " on " << to_string(inputs[0].shape()));
    const auto report = test::check_adjoint([&] { return op.run(inputs); }, inputs);
    CHECK(report.problem == "");
    if (!report.linear.empty()) linear.insert(op.name);
  }
  CHECK(linear == std::set<std::string>{"add",       "cat",       "chunk",        "clone",   "div",     "expand",
                                        "flatten",   "gather",    "index_select", "matmul",  "mean",    "mul",
                                        "narrow",    "neg",       "pad",          "permute", "reshape", "select",
                                        "split",     "squeeze",   "stack",        "sub",     "sum",     "to",
                                        "transpose", "unsqueeze", "view",         "where"});
}

TEST_CASE("gradients that arrive twice at one input add up") {
  for (const Differentiable& op : differentiable()) {
    const Inputs inputs = with_grad(op.inputs);
    INFO(op.name << " on " << to_string(inputs[0].shape()));
    const auto total = [&](int times) {
      Tensor loss = scalar(0, DType::float64);
      for (int i = 0; i < times; ++i) loss = add(loss, sum(mul(op.run(inputs), op.run(inputs))));
      return autograd::grad({loss}, inputs);
    };
    const auto once = total(1), twice = total(2);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto a = once[i].to_vector<double>(), b = twice[i].to_vector<double>();
      for (std::size_t k = 0; k < a.size(); ++k) CHECK(b[k] == Approx(2 * a[k]).margin(1e-12));
    }
  }
}

TEST_CASE("the gradient check notices a wrong derivative") {
  static constexpr autograd::Op kWrong{.name = "wrong",
                                       .derivative = "dx = dy, which is not the derivative of x^2",
                                       .forward = {nullptr,
                                                   [](const autograd::ForwardArgs& args) {
                                                     for (std::int64_t i = 0; i < args.output.numel; ++i)
                                                       args.output.as<double>()[i] = args.inputs[0].as<double>()[i] *
                                                                                     args.inputs[0].as<double>()[i];
                                                   },
                                                   nullptr},
                                       .backward = {nullptr, [](const autograd::BackwardArgs&) {}, nullptr},
                                       .passes_gradient = 1};
  const Tensor x = tensor({0.5, 3.0, 7.0}, DType::float64).requires_grad_();
  const auto report = autograd::gradcheck(
      [](const Inputs& in) { return autograd::apply(kWrong, {in[0]}, in[0].shape(), in[0].dtype()); }, {x});
  CHECK(!report.ok);
  CHECK(report.op == "wrong");
  CHECK(report.input == 0);
  CHECK(report.element == 1);
  CHECK(report.numeric == Approx(6 * report.analytic));
}
