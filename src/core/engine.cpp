#include "base/fail.hpp"
#include "core/gradient.hpp"
#include "core/walk.hpp"

/// Differentiation: walk the nodes from the latest to the first, hand each op the gradient of its output and the places
/// where the gradients of its inputs go, and keep what reaches a leaf.
namespace taper {

using detail::Buffer;
using detail::Node;
using detail::NodeOperand;

namespace {

/// One call of `backward` or `grad`. Holds its nodes from construction to destruction, whatever is thrown in between.
class Differentiation {
 public:
  /// Leaves keep their gradients.
  explicit Differentiation(std::span<Node* const> roots) : walk_(roots, true), keeps_gradients_(true) {}
  /// Leaves out what does not lead to `targets`, whose gradients `take` will give; leaves keep theirs unchanged.
  Differentiation(std::span<Node* const> roots, std::span<Node* const> targets)
      : walk_(roots, false), targets_(targets), keeps_gradients_(false) {
    const std::span<Node* const> nodes = walk_.latest_first();
    for (Node* target : targets)
      if (walk_.holds(*target)) target->wanted = target->target = true;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      bool wanted = (*node)->wanted;
      for (const NodeOperand& input : (*node)->inputs()) wanted = wanted || (input.producer && input.producer->wanted);
      (*node)->wanted = wanted;
    }
  }
  ~Differentiation() {
    if (is_done_) {
      for (Node* target : targets_)
        if (walk_.holds(*target)) drop_gradient(*target);
    } else {
      for (Node* node : walk_.latest_first()) drop_gradient(*node);
    }
  }
  Differentiation(const Differentiation&) = delete;
  Differentiation& operator=(const Differentiation&) = delete;

  /// Starts from `gradient`, or from 1 where it is undefined.
  void seed(Node& node, const Tensor& gradient) {
    contribute(node, gradient.defined() ? detail::retain(gradient.impl()->buffer) : new_one(node.dtype));
  }

  void run(bool retain_graph) {
    for (Node* node : walk_.latest_first()) {
      if (!node->gradient) continue;
      if (node->wanted)
        visit(*node, retain_graph);
      else
        drop_gradient(*node);
    }
    is_done_ = true;
  }

  /// The gradient of one of the targets, undefined when nothing reached it.
  Tensor take(Node& node) {
    if (!walk_.holds(node) || !node.gradient) return Tensor();
    node.gradient = detail::unshared(node.gradient);
    return detail::adopt(detail::retain(node.gradient), node.shape(), node.dtype);
  }

 private:
  static Buffer* new_one(DType dtype) {
    Buffer* one = detail::new_buffer(size_of(dtype));
    if (dtype == DType::float32)
      *static_cast<float*>(one->data()) = 1;
    else
      *static_cast<double*>(one->data()) = 1;
    return one;
  }

  static void drop_gradient(Node& node) { detail::release(std::exchange(node.gradient, nullptr)); }

  void visit(Node& node, bool retain_graph) {
    if (node.extra) detail::run_hooks(node);
    const bool is_kept = node.is_leaf() || (node.extra && node.extra->retain_gradient);
    if (is_kept && keeps_gradients_) detail::keep_gradient(node);
    if (!node.is_leaf()) {
      detail::propagate(node);
      if (!retain_graph) detail::release_saved(node);
    }
    if (!node.target) drop_gradient(node);
  }

  detail::Walk walk_;
  const std::span<Node* const> targets_;
  const bool keeps_gradients_;
  bool is_done_ = false;  ///< targets alone still have gradients
};

Node& recorded_node(const char* where, const Tensor& tensor) {
  Node* node = tensor.requires_grad() ? tensor.impl()->node : nullptr;
  if (!node)
    fail(ErrorKind::tape, where,
         ": the tensor does not require grad: expected a recorded result, got a tensor without a "
         "graph; call requires_grad_() on a leaf before computing");
  return *node;
}

void check_seed(const char* where, const Tensor& output, const Tensor& gradient) {
  if (!gradient.defined()) {
    if (output.numel() != 1)
      fail(ErrorKind::shape, where, ": without a gradient the tensor must have one element: expected 1, got ",
           output.numel(), "; pass a gradient of shape ", output.shape());
    return;
  }
  if (!(gradient.shape() == output.shape()))
    fail(ErrorKind::shape, where, ": the gradient does not fit the tensor: expected ", output.shape(), ", got ",
         gradient.shape());
  if (gradient.dtype() != output.dtype())
    fail(ErrorKind::type, where, ": the gradient's element type differs: expected ", output.dtype(), ", got ",
         gradient.dtype());
}

}  // namespace

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
  Node* const root[] = {&recorded_node("backward", *this)};
  check_seed("backward", *this, gradient);
  const NoGradGuard no_grad;
  Differentiation differentiation(root);
  differentiation.seed(*root[0], gradient);
  differentiation.run(retain_graph);
}

namespace autograd {

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, const GradOptions& options) {
  if (options.create_graph)
    fail(ErrorKind::tape, "grad: gradients of gradients are not offered: expected create_graph false, got true");
  if (!grad_outputs.empty() && grad_outputs.size() != outputs.size())
    fail(ErrorKind::shape, "grad: one gradient for each output: expected ", outputs.size(), ", got ",
         grad_outputs.size());
  std::vector<Node*> roots, targets;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    roots.push_back(&recorded_node("grad", outputs[i]));
    check_seed("grad", outputs[i], grad_outputs.empty() ? Tensor() : grad_outputs[i]);
  }
  for (const Tensor& input : inputs) targets.push_back(&recorded_node("grad", input));

  const NoGradGuard no_grad;
  Differentiation differentiation(roots, targets);
  for (std::size_t i = 0; i < roots.size(); ++i)
    differentiation.seed(*roots[i], grad_outputs.empty() ? Tensor() : grad_outputs[i]);
  differentiation.run(options.retain_graph);
  std::vector<Tensor> gradients;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    gradients.push_back(differentiation.take(*targets[i]));
    if (!gradients.back().defined() && !options.allow_unused)
      fail(ErrorKind::tape, "grad: the outputs do not depend on input ", i,
           ": expected a path from it, got none; pass allow_unused to get an undefined gradient");
  }
  return gradients;
}

}  // namespace autograd
}  // namespace taper
