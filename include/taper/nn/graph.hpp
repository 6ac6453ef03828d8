#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

/// Layers that read any earlier results, for skip connections and branches. What it computes is the last layer's
/// output unless `set_outputs` says otherwise; a result is dropped as soon as no later layer reads it.
class Graph : public Module {
 public:
  struct Node {
    std::string name;  ///< prefix in the state dict; empty: the position, as in `Sequential`
    Shared<Module> module;
    /// Names of the graph's inputs, of earlier layers, or of their further outputs: "input", "pool1",
    /// "pool1.indices". Empty: the layer before; the first reads the graph's first input. A layer that is a graph of
    /// several inputs reads as many, in their order.
    std::vector<std::string> inputs = {};
  };

  Graph();
  /// `inputs` names what the graph itself reads, in the order in which `forward_all` takes it; "input" alone if it is
  /// left out.
  explicit Graph(std::vector<Node> nodes);
  Graph(std::vector<Node> nodes, const std::vector<std::string>& inputs);

  /// Errors: `ErrorKind::config` for a name that is taken, an input's or has a dot, for inputs that are not there, and
  /// for another number of them than a graph takes; the graph is then as before.
  void append(Node node);
  /// What the graph gives, the main result first. Errors: `ErrorKind::config` for names that are not there, or none.
  void set_outputs(const std::vector<std::string>& names);

  /// A graph without layers gives back its first input.
  Tensor forward(const Tensor& x) override;
  /// Errors: `ErrorKind::config` for another number of inputs.
  Tensor forward_all(std::span<const Tensor> inputs) override;
  std::vector<Tensor> forward_outputs(std::span<const Tensor> inputs) override;
  std::vector<std::string> further_outputs() const override;
  std::string type_name() const override { return "Graph"; }
  std::size_t size() const { return nodes_.size(); }
  Module& operator[](std::size_t i) { return *nodes_[i].module; }

 private:
  /// One of the graph's inputs, then one after another what the layers give.
  struct Value {
    std::string name;
    std::size_t last_reader;  ///< the layer after which it is dropped
  };
  struct Wired {
    Shared<Module> module;
    std::vector<std::size_t> inputs;      ///< which values
    std::size_t first_value, last_value;  ///< what it gives
  };
  std::size_t value_of(const std::string& reader, const std::string& name) const;
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;
  void run_layer(std::size_t i, std::vector<Tensor>& values, std::vector<Tensor>& arguments) const;

  std::vector<Value> values_;
  std::vector<Wired> nodes_;
  std::vector<std::size_t> outputs_;  // which values; empty: the last layer's main result
  std::size_t input_count_ = 0;
};

}  // namespace taper::nn

#pragma GCC visibility pop
