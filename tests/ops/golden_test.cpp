#include <functional>
#include <map>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "taper/autograd.hpp"

using namespace taper;
using nlohmann::json;

namespace {

struct Result {
  Tensor output, indices;
};

/// One case as a call: its inputs and its arguments by their names in ops.hpp.
struct OpCall {
  const std::vector<Tensor>& in;
  const json& args;

  bool has(const char* key) const { return args.contains(key); }
  double number(const char* key) const { return test::golden_number(args.at(key)); }
  double number(const char* key, double fallback) const { return has(key) ? number(key) : fallback; }
  std::int64_t whole(const char* key, std::int64_t fallback = 0) const {
    return has(key) ? args.at(key).get<std::int64_t>() : fallback;
  }
  bool flag(const char* key) const { return has(key) && args.at(key).get<bool>(); }
  std::vector<std::int64_t> list(const char* key) const { return args.at(key).get<std::vector<std::int64_t>>(); }
  std::optional<Scalar> bound(const char* key) const {
    return has(key) ? std::optional<Scalar>(number(key)) : std::nullopt;
  }
  Dims dims() const {
    if (!has("dims")) return {};
    const auto d = list("dims");
    switch (d.size()) {
      case 1:
        return {d[0]};
      case 2:
        return {d[0], d[1]};
      case 3:
        return {d[0], d[1], d[2]};
      default:
        return {};
    }
  }
};

using OpRun = std::function<Result(const OpCall&)>;

OpRun unary(Tensor (*f)(const Tensor&)) {
  return [f](const OpCall& c) { return Result{f(c.in[0]), {}}; };
}

OpRun binary(Tensor (*tensors)(const Tensor&, const Tensor&), Tensor (*number)(const Tensor&, Scalar)) {
  return [=](const OpCall& c) {
    return Result{c.has("b") ? number(c.in[0], c.number("b")) : tensors(c.in[0], c.in[1]), {}};
  };
}

OpRun arithmetic(Tensor (*tensors)(const Tensor&, const Tensor&), Tensor (*number)(const Tensor&, Scalar),
                 Tensor (*reversed)(Scalar, const Tensor&)) {
  return [=](const OpCall& c) {
    if (c.has("a")) return Result{reversed(c.number("a"), c.in[0]), {}};
    return binary(tensors, number)(c);
  };
}

OpRun reduction(Tensor (*all)(const Tensor&), Tensor (*some)(const Tensor&, const Dims&, bool)) {
  return [=](const OpCall& c) {
    return Result{c.has("dims") || !all ? some(c.in[0], c.dims(), c.flag("keepdim")) : all(c.in[0]), {}};
  };
}

OpRun deviation(Tensor (*all)(const Tensor&), Tensor (*some)(const Tensor&, const Dims&, bool, double)) {
  return [=](const OpCall& c) {
    if (!c.has("dims") && !c.has("correction")) return Result{all(c.in[0]), {}};
    return Result{some(c.in[0], c.dims(), c.flag("keepdim"), c.number("correction", 1)), {}};
  };
}

OpRun one_dim(Tensor (*all)(const Tensor&), Tensor (*some)(const Tensor&, std::int64_t, bool)) {
  return [=](const OpCall& c) {
    return Result{c.has("dim") ? some(c.in[0], c.whole("dim"), c.flag("keepdim")) : all(c.in[0]), {}};
  };
}

OpRun extreme(Tensor (*all)(const Tensor&), ValuesAndIndices (*some)(const Tensor&, std::int64_t, bool)) {
  return [=](const OpCall& c) {
    if (!c.has("dim")) return Result{all(c.in[0]), {}};
    const auto found = some(c.in[0], c.whole("dim"), c.flag("keepdim"));
    return Result{found.values, found.indices};
  };
}

OpRun plain(std::function<Tensor(const OpCall&)> f) {
  return [f](const OpCall& c) { return Result{f(c), {}}; };
}

PadMode pad_mode(const OpCall& c) {
  const std::string mode = c.has("mode") ? c.args.at("mode").get<std::string>() : "zeros";
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "replicate") return PadMode::replicate;
  return mode == "circular" ? PadMode::circular : PadMode::zeros;
}

const std::map<std::string, OpRun>& operations() {
  static const std::map<std::string, OpRun> table = {
      {"neg", unary(neg)},
      {"exp", unary(exp)},
      {"log", unary(log)},
      {"log1p", unary(log1p)},
      {"sqrt", unary(sqrt)},
      {"rsqrt", unary(rsqrt)},
      {"reciprocal", unary(reciprocal)},
      {"abs", unary(abs)},
      {"sign", unary(sign)},
      {"sin", unary(sin)},
      {"cos", unary(cos)},
      {"tanh", unary(tanh)},
      {"sigmoid", unary(sigmoid)},
      {"relu", unary(relu)},
      {"silu", unary(silu)},
      {"selu", unary(selu)},
      {"leaky_relu", plain([](const OpCall& c) { return leaky_relu(c.in[0], c.number("negative_slope", 0.01)); })},
      {"elu", plain([](const OpCall& c) { return elu(c.in[0], c.number("alpha", 1)); })},
      {"gelu", plain([](const OpCall& c) {
         return gelu(c.in[0], c.has("approximate") && c.args.at("approximate") == "tanh" ? Gelu::tanh : Gelu::none);
       })},
      {"softplus",
       plain([](const OpCall& c) { return softplus(c.in[0], c.number("beta", 1), c.number("threshold", 20)); })},
      {"clamp", plain([](const OpCall& c) { return clamp(c.in[0], c.bound("min"), c.bound("max")); })},
      {"add", binary(add, add)},
      {"sub", arithmetic(sub, sub, sub)},
      {"mul", binary(mul, mul)},
      {"div", arithmetic(div, div, div)},
      {"maximum", plain([](const OpCall& c) { return maximum(c.in[0], c.in[1]); })},
      {"minimum", plain([](const OpCall& c) { return minimum(c.in[0], c.in[1]); })},
      {"pow", plain([](const OpCall& c) {
         return c.has("exponent") ? pow(c.in[0], c.number("exponent")) : pow(c.in[0], c.in[1]);
       })},
      {"where", plain([](const OpCall& c) { return where(c.in[0], c.in[1], c.in[2]); })},
      {"sum", reduction(sum, sum)},
      {"mean", reduction(mean, mean)},
      {"var", deviation(var, var)},
      {"std", deviation(taper::std, taper::std)},
      {"amax", reduction(nullptr, amax)},
      {"amin", reduction(nullptr, amin)},
      {"logsumexp", reduction(nullptr, logsumexp)},
      {"norm", plain([](const OpCall& c) {
         if (!c.has("dims")) return norm(c.in[0], c.number("p", 2));
         return norm(c.in[0], c.number("p", 2), c.dims(), c.flag("keepdim"));
       })},
      {"max", extreme(max, max)},
      {"min", extreme(min, min)},
      {"argmax", one_dim(argmax, argmax)},
      {"argmin", one_dim(argmin, argmin)},
      {"prod", one_dim(prod, prod)},
      {"softmax", plain([](const OpCall& c) { return softmax(c.in[0], c.whole("dim")); })},
      {"log_softmax", plain([](const OpCall& c) { return log_softmax(c.in[0], c.whole("dim")); })},
      {"matmul",
       plain([](const OpCall& c) { return matmul(c.in[0], c.in[1], c.flag("transpose_a"), c.flag("transpose_b")); })},
      {"reshape",
       plain([](const OpCall& c) { return reshape(c.in[0], std::span<const std::int64_t>(c.list("shape"))); })},
      {"flatten",
       plain([](const OpCall& c) { return flatten(c.in[0], c.whole("start_dim"), c.whole("end_dim", -1)); })},
      {"squeeze",
       plain([](const OpCall& c) { return c.has("dim") ? squeeze(c.in[0], c.whole("dim")) : squeeze(c.in[0]); })},
      {"unsqueeze", plain([](const OpCall& c) { return unsqueeze(c.in[0], c.whole("dim")); })},
      {"expand",
       plain([](const OpCall& c) { return expand(c.in[0], std::span<const std::int64_t>(c.list("shape"))); })},
      {"permute",
       plain([](const OpCall& c) { return permute(c.in[0], std::span<const std::int64_t>(c.list("dims"))); })},
      {"transpose", plain([](const OpCall& c) { return transpose(c.in[0], c.whole("dim0"), c.whole("dim1")); })},
      {"narrow",
       plain([](const OpCall& c) { return narrow(c.in[0], c.whole("dim"), c.whole("start"), c.whole("length")); })},
      {"select", plain([](const OpCall& c) { return select(c.in[0], c.whole("dim"), c.whole("index")); })},
      {"index_select", plain([](const OpCall& c) { return index_select(c.in[0], c.whole("dim"), c.in[1]); })},
      {"gather", plain([](const OpCall& c) { return gather(c.in[0], c.whole("dim"), c.in[1]); })},
      {"cat", plain([](const OpCall& c) { return cat(c.in, c.whole("dim")); })},
      {"stack", plain([](const OpCall& c) { return stack(c.in, c.whole("dim")); })},
      {"pad", plain([](const OpCall& c) {
         return pad(c.in[0], std::span<const std::int64_t>(c.list("amounts")), pad_mode(c), c.number("value", 0));
       })},
  };
  return table;
}

/// Runs one case in `dtype`; returns what differs from the stored answer, or "".
std::string difference(const json& stored, DType dtype, const test::Tolerance& tolerance) {
  std::vector<Tensor> inputs;
  for (const auto& input : stored.at("inputs")) {
    inputs.push_back(test::golden_tensor(input, dtype));
    if (is_floating(inputs.back().dtype())) inputs.back().requires_grad_();
  }
  const Result result = operations().at(stored.at("op").get<std::string>())({inputs, stored.at("args")});
  const auto compare = [&](const std::string& what, const Tensor& actual, const json& expected) -> std::string {
    const std::string found = test::golden_difference(actual, test::golden_tensor(expected, DType::float64), tolerance);
    return found.empty() ? "" : what + ": " + found;
  };
  std::string found = compare("output", result.output, stored.at("output"));
  if (found.empty() && stored.contains("indices")) found = compare("indices", result.indices, stored.at("indices"));
  if (!found.empty() || !stored.contains("grad_output") || stored.at("grad_output").is_null()) return found;
  result.output.backward(test::golden_tensor(stored.at("grad_output"), dtype));
  for (std::size_t i = 0; i < inputs.size() && found.empty(); ++i) {
    const json& expected = stored.at("grad_inputs").at(i);
    if (expected.is_null() != !inputs[i].grad().defined())
      return "gradient " + std::to_string(i) + ": missing or extra";
    if (!expected.is_null()) found = compare("gradient " + std::to_string(i), inputs[i].grad(), expected);
  }
  return found;
}

}  // namespace

TEST_CASE("every operation gives PyTorch's stored values and gradients in float64") {
  const json golden = test::read_golden("ops.json");
  REQUIRE(golden.at("cases").size() > 300);
  for (const auto& stored : golden.at("cases")) {
    INFO(stored.at("name").get<std::string>());
    CHECK(difference(stored, DType::float64, test::kFloat64Tolerance) == "");
  }
}

TEST_CASE("every operation gives PyTorch's stored values and gradients in float32") {
  const json golden = test::read_golden("ops.json");
  for (const auto& stored : golden.at("cases")) {
    INFO(stored.at("name").get<std::string>());
    CHECK(difference(stored, DType::float32, test::kFloat32Tolerance) == "");
  }
}
