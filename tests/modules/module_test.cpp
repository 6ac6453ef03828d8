#include "taper/nn/module.hpp"

#include "support/catch.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/activation.hpp"
#include "taper/nn/dropout.hpp"
#include "taper/nn/linear.hpp"
#include "taper/ops.hpp"

using namespace taper;
using nn::make;

namespace {

/// A layer with a buffer, in a model with a name.
struct Counter : nn::Module {
  Counter() { register_buffer("count", count); }
  Tensor forward(const Tensor& x) override { return x; }
  Tensor count = tensor({1, 2, 3}, DType::float32);
};

struct Model : nn::Module {
  nn::Linear fc{{.in_features = 5, .out_features = 3}};
  nn::Dropout drop{{.p = 0.5}};
  Counter counter;
  Model() { register_modules({{"fc", fc}, {"drop", drop}, {"counter", counter}}); }
  Tensor forward(const Tensor& x) override { return fc(drop(x)); }
};

std::vector<std::string> names(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : tensors) out.push_back(name);
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a module lists its own and its children's tensors by path") {
  const Model model;
  CHECK(names(model.named_parameters()) == Names{"fc.weight", "fc.bias"});
  CHECK(names(model.named_buffers()) == Names{"counter.count"});
  CHECK(names(model.state_dict()) == Names{"fc.weight", "fc.bias", "counter.count"});
  CHECK(model.parameters().size() == 2);
  CHECK(model.parameter_count() == 18);
  CHECK(model.named_children().size() == 3);
}

TEST_CASE("training mode, freezing, gradients and element types reach all children") {
  Model model;
  CHECK(model.drop.is_training());
  model.eval();
  CHECK_FALSE(model.drop.is_training());
  model.train();
  CHECK(model.drop.is_training());

  model(ones({2, 5})).sum().backward();
  CHECK(model.fc.weight.grad().defined());
  model.zero_grad();
  CHECK_FALSE(model.fc.weight.grad().defined());

  model.requires_grad_(false);
  CHECK_FALSE(model.fc.bias.requires_grad());
  model.to(DType::float64);
  CHECK(model.fc.weight.dtype() == DType::float64);
  CHECK(model.counter.count.dtype() == DType::float64);
  CHECK_FALSE(model.fc.bias.requires_grad());
  model.requires_grad_(true);
  CHECK(model.fc.bias.requires_grad());
  CHECK_THROWS_WITH(model.to(DType::int64),
                    "Module: parameters must be floating: expected float32 or float64, got int64");
}

TEST_CASE("a state dict is loaded by name, whatever its order") {
  const Model from;
  Model to;
  nn::StateDict state = from.state_dict();
  std::swap(state[0], state[2]);
  CHECK(to.load_state_dict(state).complete());
  CHECK(to.fc.weight.to_vector<float>() == from.fc.weight.to_vector<float>());
  CHECK(to.fc.weight.requires_grad());
}

TEST_CASE("a state dict that does not fit changes nothing") {
  Model model;
  const auto before = model.fc.weight.to_vector<float>();
  nn::StateDict state = Model().state_dict();
  state[1].tensor = ones({7});
  CHECK_THROWS_WITH(model.load_state_dict(state), "load_state_dict: fc.bias has another shape: expected [3], got [7]");
  state[1].tensor = ones({3}, DType::int64);
  CHECK_THROWS_WITH(model.load_state_dict(state),
                    "load_state_dict: fc.bias has another element type: expected float32, got int64");
  state[1] = {"fc.offset", ones({3})};
  CHECK_THROWS_WITH(model.load_state_dict(state),
                    "load_state_dict: parameters are missing: expected fc.bias, got none of them");
  state.push_back({"fc.bias", ones({3})});
  CHECK_THROWS_WITH(model.load_state_dict(state),
                    "load_state_dict: unexpected parameters: expected only the module's own, got fc.offset");
  CHECK(model.fc.weight.to_vector<float>() == before);
}

TEST_CASE("loading that is not strict takes what is there and reports the rest") {
  Model model;
  const nn::LoadReport report =
      model.load_state_dict({{"fc.bias", tensor({7, 8, 9}, DType::float64)}, {"other", ones({2})}}, false);
  CHECK(report.missing == Names{"fc.weight", "counter.count"});
  CHECK(report.unexpected == Names{"other"});
  CHECK_FALSE(report.complete());
  CHECK(model.fc.bias.to_vector<float>() == std::vector<float>{7, 8, 9});
  CHECK(model.fc.bias.dtype() == DType::float32);
}

TEST_CASE("a Sequential runs its layers in order under their positions or names") {
  nn::Sequential model{make<nn::Linear>({.in_features = 5, .out_features = 3}), make<nn::ReLU>()};
  model.append("last", make<nn::Linear>({.in_features = 3, .out_features = 2, .bias = false}));
  CHECK(names(model.named_parameters()) == Names{"0.weight", "0.bias", "last.weight"});
  CHECK(model(ones({7, 5})).shape() == Shape{7, 2});
  CHECK(model.size() == 3);
  CHECK(model[1].type_name() == "ReLU");
  CHECK(model.to_string() ==
        "Sequential(\n  (0): Linear(in_features=5, out_features=3, bias=true)\n  (1): ReLU()\n"
        "  (last): Linear(in_features=3, out_features=2, bias=false)\n)");
  CHECK_THROWS_WITH(model.append("last", make<nn::ReLU>()),
                    "Sequential: a child's name must be new and without a dot: expected another name, got \"last\"");
  CHECK_THROWS_WITH(model.append("a.b", make<nn::ReLU>()),
                    "Sequential: a child's name must be new and without a dot: expected another name, got \"a.b\"");
}

TEST_CASE("a module says how many inputs it takes") {
  nn::Module none;
  nn::ReLU one;
  const std::vector<Tensor> two{ones({2}), ones({2})};
  CHECK_THROWS_WITH(none(ones({2})),
                    "Module: no forward for one input: expected forward or forward_all to be overridden, got neither");
  CHECK_THROWS_WITH(one.forward_all(two), "ReLU: takes one input: expected 1, got 2");
}
