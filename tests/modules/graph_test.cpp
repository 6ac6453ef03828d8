#include "taper/nn/graph.hpp"

#include "support/catch.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/join.hpp"
#include "taper/nn/linear.hpp"
#include "taper/nn/shape.hpp"
#include "taper/ops.hpp"

using namespace taper;
using nn::Graph;
using nn::make;

namespace {

/// Multiplies by a number, remembers its result's memory, and counts who else holds that of another layer.
struct Scale : nn::Module {
  explicit Scale(double f, Scale* w = nullptr) : factor(f), watched(w) {}
  Tensor forward(const Tensor& x) override {
    if (watched) handles_seen = int(watched->result.impl()->buffer->refs.count()) - 1;
    const Tensor y = mul(x, factor);
    result = y.detach();
    return y;
  }
  double factor;
  Scale* watched;
  Tensor result;
  int handles_seen = -1;
};

std::shared_ptr<Scale> scale(double factor, Scale* watched = nullptr) {
  return std::make_shared<Scale>(factor, watched);
}

float run(Graph& graph, double x) { return float(graph(tensor(x)).item()); }

}  // namespace

TEST_CASE("a graph without inputs named runs its layers one after another") {
  Graph graph({{"", scale(2)}, {"named", scale(3)}, {"", scale(5)}});
  CHECK(run(graph, 1) == 30);
  CHECK(graph.size() == 3);
  const auto children = graph.named_children();
  CHECK(children[0].first == "0");
  CHECK(children[1].first == "named");
  CHECK(children[2].first == "2");
  Graph none;
  CHECK(run(none, 7) == 7);
}

TEST_CASE("a graph reads the input and any earlier layer, several times too") {
  Graph graph({{"double", scale(2)},
               {"triple", scale(3), {"input"}},
               {"sum", make<nn::Add>(), {"double", "triple", "input", "triple"}},
               {"product", make<nn::Multiply>(), {"sum", "double"}}});
  CHECK(run(graph, 1) == 18);  // (2 + 3 + 1 + 3) * 2
}

TEST_CASE("a graph differentiates through branches") {
  Graph graph({{"double", scale(2)}, {"square", make<nn::Multiply>(), {"double", "double"}}});
  const Tensor x = tensor(3.0).requires_grad_();
  graph(x).backward();
  CHECK(x.grad().item() == 24);  // d (2x)^2 = 8x
}

TEST_CASE("a graph drops a result when no later layer reads it") {
  const NoGradGuard no_grad;
  const auto first = scale(2), unread = scale(3);
  const auto reader = scale(5, first.get()), after_reader = scale(7, first.get()), last = scale(11, unread.get());
  Graph graph({{"first", first},
               {"reader", reader},
               {"after", after_reader},
               {"unread", unread, {"input"}},
               {"last", last, {"after"}}});
  CHECK(run(graph, 1) == 770);
  CHECK(reader->handles_seen == 1);  // its own input
  CHECK(after_reader->handles_seen == 0);
  CHECK(last->handles_seen == 0);
}

TEST_CASE("a graph names its parameters by its layers") {
  Graph graph({{"fc", make<nn::Linear>({.in_features = 5, .out_features = 3})},
               {"", make<nn::Linear>({.in_features = 3, .out_features = 2, .bias = false})}});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : graph.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"fc.weight", "fc.bias", "1.weight"});
  CHECK(graph(ones({7, 5})).shape() == Shape{7, 2});
  CHECK(graph.to_string() ==
        "Graph(\n  (fc): Linear(in_features=5, out_features=3, bias=true)\n"
        "  (1): Linear(in_features=3, out_features=2, bias=false)\n)");
}

TEST_CASE("a graph refuses names and inputs that do not fit, and is then as before") {
  Graph graph({{"first", scale(2)}});
  CHECK_THROWS_WITH(graph.append({"second", scale(3), {"frist"}}),
                    "Graph: layer second reads what is not there: expected \"input\" or an earlier layer, got "
                    "\"frist\"");
  CHECK_THROWS_WITH(graph.append({"second", scale(3), {"second"}}),
                    "Graph: layer second reads what is not there: expected \"input\" or an earlier layer, got "
                    "\"second\"");
  CHECK_THROWS_WITH(graph.append({"first", scale(3)}),
                    "Graph: a child's name must be new and without a dot: expected another name, got \"first\"");
  CHECK_THROWS_WITH(graph.append({"a.b", scale(3)}),
                    "Graph: a child's name must be new and without a dot: expected another name, got \"a.b\"");
  CHECK_THROWS_WITH(graph.append({"input", scale(3)}),
                    "Graph: the model's own input has this name: expected another name, got \"input\"");
  CHECK_THROWS_WITH(graph.append({"second", nullptr}), "Graph: layer second is empty: expected a module, got null");
  CHECK(graph.size() == 1);
  CHECK(run(graph, 1) == 2);
}

TEST_CASE("a graph whose layer fails passes the error on and works again") {
  Graph graph({{"fc", make<nn::Linear>({.in_features = 5, .out_features = 3})}, {"flat", make<nn::Flatten>()}});
  CHECK_THROWS_WITH(graph(ones({2, 7})), "linear: input does not fit in_features: expected [*, 5], got [2, 7]");
  CHECK(graph(ones({2, 5})).shape() == Shape{2, 3});
}
