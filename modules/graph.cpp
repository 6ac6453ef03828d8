#include "taper/nn/graph.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/nearest.hpp"

namespace taper::nn {

namespace {

// In place of a value's last reader.
constexpr std::size_t kNobody = std::size_t(-2);     // dropped at once
constexpr std::size_t kTheCaller = std::size_t(-1);  // never dropped

}  // namespace

Graph::Graph() : Graph(std::vector<Node>()) {}
Graph::Graph(std::vector<Node> nodes) : Graph(std::move(nodes), {"input"}) {}

Graph::Graph(std::vector<Node> nodes, const std::vector<std::string>& inputs) : input_count_(inputs.size()) {
  if (inputs.empty()) fail(ErrorKind::config, "Graph: reads nothing: expected at least 1 input, got none");
  for (const std::string& name : inputs) {
    const bool taken = std::any_of(values_.begin(), values_.end(), [&](const Value& v) { return v.name == name; });
    if (name.empty() || taken || name.find('.') != std::string::npos)
      fail(ErrorKind::config, "Graph: an input's name must be new and without a dot: expected another name, got \"",
           name, '"');
    values_.push_back({name, kTheCaller});
  }
  for (Node& node : nodes) append(std::move(node));
}

std::size_t Graph::value_of(const std::string& reader, const std::string& name) const {
  std::vector<std::string_view> known;
  for (const Value& value : values_) {
    if (value.name == name) return known.size();
    known.push_back(value.name);
  }
  std::string inputs;
  for (std::size_t i = 0; i < input_count_; ++i) inputs += cat('"', values_[i].name, "\", ");
  inputs.replace(inputs.size() - 2, 2, " or an earlier layer");
  fail(ErrorKind::config, "Graph: ", reader, " reads what is not there: expected ", inputs, ", got \"", name, '"',
       did_you_mean(name, known));
}

void Graph::append(Node node) {
  const std::size_t i = nodes_.size();
  const std::string name = node.name.empty() ? cat(i) : std::move(node.name);
  if (!node.module) fail(ErrorKind::config, "Graph: layer ", name, " is empty: expected a module, got null");
  for (std::size_t input = 0; input < input_count_; ++input)
    if (name == values_[input].name)
      fail(ErrorKind::config, "Graph: the model's own input has this name: expected another name, got \"", name, '"');
  Wired wired{std::move(node.module), {}, values_.size(), values_.size()};
  for (const std::string& input : node.inputs) wired.inputs.push_back(value_of("layer " + name, input));
  if (wired.inputs.empty()) wired.inputs.push_back(nodes_.empty() ? 0 : nodes_.back().first_value);
  const auto* block = dynamic_cast<const Graph*>(&*wired.module);
  if (block && block->input_count_ != wired.inputs.size())
    fail(ErrorKind::config, "Graph: layer ", name, " takes another number of inputs: expected ", block->input_count_,
         ", got ", wired.inputs.size());
  const std::vector<std::string> further = wired.module->further_outputs();
  register_module(name, *wired.module);
  for (const std::size_t value : wired.inputs)
    if (values_[value].last_reader != kTheCaller) values_[value].last_reader = i;
  values_.push_back({name, kNobody});
  for (const std::string& output : further) values_.push_back({cat(name, '.', output), kNobody});
  wired.last_value = values_.size();
  nodes_.push_back(std::move(wired));
}

void Graph::set_outputs(const std::vector<std::string>& names) {
  if (names.empty()) fail(ErrorKind::config, "Graph: gives nothing: expected at least 1 output, got none");
  std::vector<std::size_t> outputs;
  for (const std::string& name : names) outputs.push_back(value_of("the caller", name));
  for (const std::size_t value : outputs) values_[value].last_reader = kTheCaller;
  outputs_ = std::move(outputs);
}

void Graph::run_layer(std::size_t i, std::vector<Tensor>& values, std::vector<Tensor>& arguments) const {
  const Wired& node = nodes_[i];
  arguments.clear();
  for (const std::size_t value : node.inputs) arguments.push_back(values[value]);
  for (const std::size_t value : node.inputs)
    if (values_[value].last_reader == i) values[value] = Tensor();
  const auto keep = [&](std::size_t value, Tensor&& result) {
    const bool is_result = outputs_.empty() && i + 1 == nodes_.size();
    if (values_[value].last_reader != kNobody || is_result) values[value] = std::move(result);
  };
  const std::size_t first = node.first_value, count = node.last_value - first;
  const bool several =
      std::any_of(values_.begin() + std::ptrdiff_t(first) + 1, values_.begin() + std::ptrdiff_t(node.last_value),
                  [](const Value& value) { return value.last_reader != kNobody; });
  if (!several) return keep(first, node.module->forward_all(arguments));
  std::vector<Tensor> results = node.module->forward_outputs(arguments);
  if (results.size() != count)
    fail(ErrorKind::config, "Graph: layer ", values_[first].name,
         " gives another number of results than it names: ", "expected ", count, ", got ", results.size());
  for (std::size_t k = 0; k < count; ++k) keep(first + k, std::move(results[k]));
}

/// All values that are the caller's, at their places.
std::vector<Tensor> Graph::run(std::span<const Tensor> inputs) const {
  if (inputs.size() != input_count_)
    fail(ErrorKind::config, "Graph: takes another number of inputs: expected ", input_count_, ", got ", inputs.size());
  std::vector<Tensor> values(inputs.begin(), inputs.end()), arguments;
  values.resize(values_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) run_layer(i, values, arguments);
  return values;
}

Tensor Graph::forward(const Tensor& x) { return forward_all({&x, 1}); }

Tensor Graph::forward_all(std::span<const Tensor> inputs) {
  const std::vector<Tensor> values = run(inputs);
  if (!outputs_.empty()) return values[outputs_[0]];
  return values[nodes_.empty() ? 0 : nodes_.back().first_value];
}

std::vector<Tensor> Graph::forward_outputs(std::span<const Tensor> inputs) {
  if (outputs_.size() < 2) return {forward_all(inputs)};
  const std::vector<Tensor> values = run(inputs);
  std::vector<Tensor> results;
  for (const std::size_t value : outputs_) results.push_back(values[value]);
  return results;
}

std::vector<std::string> Graph::further_outputs() const {
  std::vector<std::string> names;
  for (std::size_t k = 1; k < outputs_.size(); ++k) names.push_back(values_[outputs_[k]].name);
  return names;
}

}  // namespace taper::nn
