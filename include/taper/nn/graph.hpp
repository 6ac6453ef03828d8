#pragma once

#include "taper/nn/module.hpp"

namespace taper::nn {

/// Layers that read any earlier results, for skip connections and branches. What it computes is the last layer's
/// output; a result is dropped as soon as no later layer reads it.
class Graph : public Module {
 public:
  struct Node {
    std::string name;  ///< prefix in the state dict; empty: the position, as in `Sequential`
    std::shared_ptr<Module> module;
    /// Names of earlier layers, or "input" for the model's own. Empty: the layer before, the first reads "input".
    std::vector<std::string> inputs = {};
  };

  Graph() = default;
  explicit Graph(std::vector<Node> nodes);

  /// Errors: `ErrorKind::config` for a name that is taken, "input" or has a dot, and for inputs that are no earlier
  /// layers; the graph is then as before.
  void append(Node node);

  /// A graph without layers gives back its input.
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Graph"; }
  std::size_t size() const { return nodes_.size(); }
  Module& operator[](std::size_t i) { return *nodes_[i].module; }

 private:
  // Value 0 is the graph's input, value i + 1 the result of layer i.
  struct Wired {
    std::string name;
    std::shared_ptr<Module> module;
    std::vector<std::size_t> inputs;
    std::size_t last_reader;  ///< of its result; itself when there is none
  };
  std::size_t value_of(const std::string& reader, const std::string& name) const;

  std::vector<Wired> nodes_;
};

}  // namespace taper::nn
