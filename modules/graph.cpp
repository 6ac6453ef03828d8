#include "taper/nn/graph.hpp"

#include "base/fail.hpp"

namespace taper::nn {

Graph::Graph(std::vector<Node> nodes) {
  for (Node& node : nodes) append(std::move(node));
}

std::size_t Graph::value_of(const std::string& reader, const std::string& name) const {
  if (name == "input") return 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].name == name) return i + 1;
  fail(ErrorKind::config, "Graph: layer ", reader,
       " reads what is not there: expected \"input\" or an earlier layer, got \"", name, '"');
}

void Graph::append(Node node) {
  const std::size_t i = nodes_.size();
  std::string name = node.name.empty() ? cat(i) : std::move(node.name);
  if (!node.module) fail(ErrorKind::config, "Graph: layer ", name, " is empty: expected a module, got null");
  if (name == "input")
    fail(ErrorKind::config, "Graph: the model's own input has this name: expected another name, got \"input\"");
  std::vector<std::size_t> inputs;
  for (const std::string& input : node.inputs) inputs.push_back(value_of(name, input));
  if (inputs.empty()) inputs.push_back(i);
  register_module(name, *node.module);
  for (const std::size_t value : inputs)
    if (value > 0) nodes_[value - 1].last_reader = i;
  nodes_.push_back({std::move(name), std::move(node.module), std::move(inputs), i});
}

Tensor Graph::forward(const Tensor& x) {
  if (nodes_.empty()) return x;
  std::vector<Tensor> values(nodes_.size() + 1), inputs;
  values[0] = x;
  for (std::size_t i = 0;; ++i) {
    const Wired& node = nodes_[i];
    inputs.clear();
    for (const std::size_t value : node.inputs) inputs.push_back(values[value]);
    for (const std::size_t value : node.inputs)
      if (value > 0 && nodes_[value - 1].last_reader == i) values[value] = Tensor();
    Tensor y = node.module->forward_all(inputs);
    if (i + 1 == nodes_.size()) return y;
    if (node.last_reader != i) values[i + 1] = std::move(y);
  }
}

}  // namespace taper::nn
