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

Shared<Scale> scale(double factor, Scale* watched = nullptr) { return Shared<Scale>::make(factor, watched); }

/// Gives the sum and, when asked, the difference and the product of its inputs.
struct Several : nn::Module {
  Tensor forward_all(std::span<const Tensor> x) override {
    asked_for_all = false;
    return add(x[0], x[1]);
  }
  std::vector<Tensor> forward_outputs(std::span<const Tensor> x) override {
    asked_for_all = true;
    std::vector<Tensor> results{add(x[0], x[1]), sub(x[0], x[1]), mul(x[0], x[1])};
    results.resize(result_count);
    difference = results.size() > 1 ? results[1].detach() : Tensor();
    return results;
  }
  std::vector<std::string> further_outputs() const override { return {"difference", "product"}; }
  bool asked_for_all = false;
  std::size_t result_count = 3;
  Tensor difference;
};

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

TEST_CASE("a graph takes several inputs by their order and reads them by name") {
  Graph graph({{"double", scale(2), {"right"}}, {"sum", make<nn::Add>(), {"left", "double"}}}, {"left", "right"});
  const std::vector<Tensor> inputs{tensor(3.0), tensor(5.0)};
  CHECK(graph.forward_all(inputs).item() == 13);
  CHECK_THROWS_WITH(graph(inputs[0]), "Graph: takes another number of inputs: expected 2, got 1");
  Graph first({{"", scale(2)}}, {"left", "right"});
  CHECK(first.forward_all(inputs).item() == 6);
}

TEST_CASE("layers of a graph read the further results of a layer by its name and theirs") {
  const auto several = Shared<Several>::make();
  Graph graph({{"several", several, {"left", "right"}},
               {"scaled", scale(7), {"several.product"}},
               {"all", make<nn::Add>(), {"scaled", "several", "several.difference"}}},
              {"left", "right"});
  const std::vector<Tensor> inputs{tensor(5.0).requires_grad_(), tensor(3.0)};
  const Tensor y = graph.forward_all(inputs);
  CHECK(y.item() == 7 * 15 + 8 + 2);
  y.backward();
  CHECK(inputs[0].grad().item() == 7 * 3 + 2);
  CHECK(several->asked_for_all);
}

TEST_CASE("further results that nobody reads are not asked for") {
  const auto several = Shared<Several>::make();
  Graph graph({{"several", several, {"left", "right"}}, {"", scale(2)}}, {"left", "right"});
  CHECK(graph.forward_all(std::vector<Tensor>{tensor(5.0), tensor(3.0)}).item() == 16);
  CHECK(!several->asked_for_all);
}

TEST_CASE("a graph drops further results as soon as nobody reads them") {
  const NoGradGuard no_grad;
  struct Watch : nn::Module {
    explicit Watch(const Several& w) : watched(w) {}
    Tensor forward(const Tensor& x) override {
      handles_seen = int(watched.difference.impl()->buffer->refs.count()) - 1;
      return x;
    }
    const Several& watched;
    int handles_seen = -1;
  };
  const auto several = Shared<Several>::make();
  const auto unread = Shared<Watch>::make(*several), reader = Shared<Watch>::make(*several),
             after = Shared<Watch>::make(*several);
  const std::vector<Tensor> inputs{tensor(5.0), tensor(3.0)};
  Graph graph({{"several", several, {"left", "right"}},
               {"reader", reader, {"several.difference"}},
               {"after", after, {"several.product"}}},
              {"left", "right"});
  CHECK(graph.forward_all(inputs).item() == 15);
  CHECK(reader->handles_seen == 1);  // its own input
  CHECK(after->handles_seen == 0);
  Graph product({{"several", several, {"left", "right"}}, {"unread", unread, {"several.product"}}}, {"left", "right"});
  CHECK(product.forward_all(inputs).item() == 15);
  CHECK(unread->handles_seen == 0);
}

TEST_CASE("a graph gives the outputs it is told to, the main one first") {
  const auto inner = Shared<Graph>::make(
      std::vector<Graph::Node>{{"several", Shared<Several>::make(), {"left", "right"}}, {"last", scale(2)}},
      std::vector<std::string>{"left", "right"});
  CHECK(inner->further_outputs().empty());
  inner->set_outputs({"last", "several.product", "right"});
  CHECK(inner->further_outputs() == std::vector<std::string>{"several.product", "right"});
  const std::vector<Tensor> inputs{tensor(5.0), tensor(3.0)};
  CHECK(inner->forward_all(inputs).item() == 16);
  const auto outputs = inner->forward_outputs(inputs);
  REQUIRE(outputs.size() == 3);
  CHECK(outputs[0].item() == 16);
  CHECK(outputs[1].item() == 15);
  CHECK(outputs[2].item() == 3);
  Graph outer({{"block", inner, {"a", "b"}}, {"sum", make<nn::Add>(), {"block.several.product", "block"}}}, {"a", "b"});
  CHECK(outer.forward_all(inputs).item() == 31);
  Graph main({{"only", scale(2)}, {"unused", scale(3)}});
  main.set_outputs({"only"});
  CHECK(run(main, 5) == 10);
  CHECK(main.forward_outputs(std::vector<Tensor>{tensor(5.0)}).size() == 1);
}

TEST_CASE("a graph in a graph reads as many values as it has inputs, and differentiates into each") {
  const auto inner =
      Shared<Graph>::make(std::vector<Graph::Node>{{"", scale(3), {"b"}}, {"", make<nn::Multiply>(), {"0", "a"}}},
                          std::vector<std::string>{"a", "b"});
  Graph outer(
      {{"double", scale(2)}, {"block", inner, {"double", "input"}}, {"sum", make<nn::Add>(), {"block", "input"}}});
  const Tensor x = tensor(5.0).requires_grad_();
  const Tensor y = outer(x);
  CHECK(y.item() == 155);  // 3 x 2x + x
  y.backward();
  CHECK(x.grad().item() == 61);
  CHECK_THROWS_WITH(outer.append({"again", inner, {"double"}}),
                    "Graph: layer again takes another number of inputs: expected 2, got 1");
  CHECK_THROWS_WITH(outer.append({"again", inner}),
                    "Graph: layer again takes another number of inputs: expected 2, got 1");
  CHECK_THROWS_WITH(outer.append({"again", inner, {"double", "sum", "input"}}),
                    "Graph: layer again takes another number of inputs: expected 2, got 3");
  CHECK_THROWS_WITH(outer.append({"again", Shared<Graph>::make(), {"double", "sum"}}),
                    "Graph: layer again takes another number of inputs: expected 1, got 2");
  CHECK(outer.size() == 3);
  CHECK(run(outer, 5) == 155);
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
                    "\"frist\"; did you mean first?");
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
  CHECK_THROWS_WITH(graph.append({"second", scale(3), {"first.indices"}}),
                    "Graph: layer second reads what is not there: expected \"input\" or an earlier layer, got "
                    "\"first.indices\"; did you mean first?");
  CHECK_THROWS_WITH(graph.set_outputs({"last"}),
                    "Graph: the caller reads what is not there: expected \"input\" or an earlier layer, got \"last\"");
  CHECK_THROWS_WITH(graph.set_outputs({}), "Graph: gives nothing: expected at least 1 output, got none");
  CHECK(graph.size() == 1);
  CHECK(run(graph, 1) == 2);
}

TEST_CASE("a graph refuses inputs that it could not tell apart") {
  const auto graph_of = [](std::vector<std::string> inputs) { Graph({}, inputs); };
  CHECK_THROWS_WITH(graph_of({}), "Graph: reads nothing: expected at least 1 input, got none");
  for (const char* name : {"left", "", "a.b"})
    CHECK_THROWS_WITH(
        graph_of({"left", name}),
        std::string("Graph: an input's name must be new and without a dot: expected another name, got \"") + name +
            "\"");
  Graph graph({}, {"left", "right"});
  CHECK_THROWS_WITH(graph.append({"right", scale(3)}),
                    "Graph: the model's own input has this name: expected another name, got \"right\"");
  CHECK_THROWS_WITH(graph.append({"sum", scale(3), {"input"}}),
                    "Graph: layer sum reads what is not there: expected \"left\", \"right\" or an earlier layer, got "
                    "\"input\"");
}

TEST_CASE("a graph notices a layer that gives another number of results than it names") {
  const auto several = Shared<Several>::make();
  several->result_count = 2;
  Graph graph({{"several", several, {"input", "input"}}, {"", scale(2), {"several.product"}}});
  CHECK_THROWS_WITH(run(graph, 1),
                    "Graph: layer several gives another number of results than it names: expected 3, got 2");
}

TEST_CASE("a graph whose layer fails passes the error on and works again") {
  Graph graph({{"fc", make<nn::Linear>({.in_features = 5, .out_features = 3})}, {"flat", make<nn::Flatten>()}});
  CHECK_THROWS_WITH(graph(ones({2, 7})), "linear: input does not fit in_features: expected [*, 5], got [2, 7]");
  CHECK(graph(ones({2, 5})).shape() == Shape{2, 3});
}
