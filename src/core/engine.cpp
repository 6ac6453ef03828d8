#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/fail.hpp"
#include "core/node.hpp"
#include "kernels/accumulate.hpp"
#include "taper/creation.hpp"

/// Differentiation: walk the nodes from the latest to the first, hand each op the gradient of its output and the places
/// where the gradients of its inputs go, and keep what reaches a leaf.
namespace taper {

using autograd::BackwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using autograd::Operand;
using detail::Buffer;
using detail::Node;
using detail::NodeOperand;

namespace {

constinit thread_local bool anomaly_mode = false;

void* elements(Buffer* buffer) { return buffer ? buffer->data() : nullptr; }

void add_into(Buffer* sum, const Buffer* term, std::int64_t n, DType dtype) {
  const void* from = const_cast<Buffer*>(term)->data();
  if (dtype == DType::float32)
    kernels::accumulate(static_cast<float*>(sum->data()), static_cast<const float*>(from), n);
  else
    kernels::accumulate(static_cast<double*>(sum->data()), static_cast<const double*>(from), n);
}

Buffer* copy_of(Buffer* buffer) {
  Buffer* copy = detail::new_buffer(buffer->bytes);
  std::memcpy(copy->data(), buffer->data(), buffer->bytes);
  return copy;
}

/// Makes `buffer` this owner's alone, so that it may be written.
void unshare(Buffer*& buffer) {
  if (buffer->refs.is_one()) return;
  Buffer* copy = copy_of(buffer);
  detail::release(buffer);
  buffer = copy;
}

/// Adds a counted contribution, which it takes over, to what `node` has gathered.
void contribute(Node& node, Buffer* term) {
  if (!node.gradient) {
    node.gradient = term;
    return;
  }
  unshare(node.gradient);
  add_into(node.gradient, term, node.numel, node.dtype);
  detail::release(term);
}

bool any_nan(const Operand& x) {
  for (std::int64_t i = 0; i < x.numel; ++i)
    if (x.dtype == DType::float32 ? std::isnan(x.as<float>()[i]) : std::isnan(x.as<double>()[i])) return true;
  return false;
}

void check_saved(Node& node) {
  if (node.released && node.saved_any) [[unlikely]]
    fail(ErrorKind::tape, "backward: the saved values of ", node.op->name, " (#", node.position,
         ") are freed: expected a graph not yet differentiated, got a second backward; pass retain_graph to the first");
  const auto check = [&](const Buffer* buffer, std::uint32_t version, const char* what, std::size_t index) {
    if (buffer && buffer->version != version) [[unlikely]]
      fail(ErrorKind::tape, "backward: a value that ", node.op->name, " (#", node.position,
           ") saved was changed in place: expected version ", version, " of ", what, index, ", got ", buffer->version,
           "; clone() it before the change");
  };
  const auto operands = node.operands();
  for (std::size_t i = 0; i < operands.size(); ++i) check(operands[i].saved, operands[i].version, "input ", i);
  check(node.output, node.output_version, "output ", 0);
}

/// Adds a complete gradient to a leaf's (or retained) one; steals its memory when nobody else holds it.
void keep_gradient(Node& node) {
  Tensor& kept = node.ensure_extra().gradient;
  if (kept.defined()) {
    add_into(kept.impl()->buffer, node.gradient, node.numel, node.dtype);
    ++kept.impl()->buffer->version;
    return;
  }
  const bool shared = !node.gradient->refs.is_one() || !node.is_leaf();
  kept =
      detail::adopt(shared ? copy_of(node.gradient) : std::exchange(node.gradient, nullptr), node.shape(), node.dtype);
}

void run_hooks(Node& node) {
  for (std::size_t i = 0; i < node.extra->hooks.size(); ++i) {
    const Tensor gradient = detail::adopt(detail::retain(node.gradient), node.shape(), node.dtype);
    const Tensor replaced = (*node.extra->hooks[i])(gradient);
    if (!replaced.defined()) continue;
    if (!(replaced.shape() == node.shape()) || replaced.dtype() != node.dtype)
      fail(ErrorKind::shape, "register_hook: the hook's gradient does not fit: expected ", name_of(node.dtype), " ",
           node.shape(), ", got ", name_of(replaced.dtype()), " ", replaced.shape());
    detail::release(node.gradient);
    node.gradient = detail::retain(replaced.impl()->buffer);
  }
}

/// Lists that every backward call of a thread fills anew.
struct Scratch {
  std::vector<Operand> operands;
  std::vector<GradientSlot> slots;
  std::vector<std::pair<Node*, Buffer*>> extra_terms;
  std::vector<Node*> nodes;
};
thread_local Scratch scratch;

bool passes_gradient(const Node& node, std::size_t input, std::int64_t numel) {
  return input < 32 && (node.op->passes_gradient >> input & 1) && numel == node.numel;
}

void list_operands(Node& node, std::vector<Operand>& operands) {
  operands.clear();
  const std::int64_t* extents = node.extents() + node.rank;
  for (const NodeOperand& from : node.operands()) {
    std::int64_t numel = 1;
    for (int d = 0; d < from.rank; ++d) numel *= extents[d];
    operands.push_back({elements(from.saved), extents, numel, from.rank, from.dtype});
    extents += from.rank;
  }
}

/// The place for the gradient of input `i`. A producer that gathers for the first time gets fresh memory to be written,
/// later contributions are added; a second input from one producer gets memory of its own, so that an op never sees the
/// same gradient twice.
GradientSlot slot_for(Node& node, std::size_t i, Scratch& lists) {
  Node& producer = *node.inputs()[i].producer;
  const std::size_t bytes = std::size_t(producer.numel) * size_of(producer.dtype);
  const auto consumer = std::uint32_t(node.position);
  const bool seen = producer.gradient && producer.last_consumer == consumer;
  producer.last_consumer = consumer;
  GradientSlot slot{.gradient = lists.operands[i]};
  if (seen) {
    lists.extra_terms.push_back({&producer, detail::new_buffer(bytes)});
    slot.gradient.data = lists.extra_terms.back().second->data();
    return slot;
  }
  slot.add = producer.gradient != nullptr;
  if (slot.add)
    unshare(producer.gradient);
  else
    producer.gradient = detail::new_buffer(bytes);
  slot.gradient.data = producer.gradient->data();
  return slot;
}

void check_anomaly(const Node& node, const std::vector<GradientSlot>& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (slots[i] && any_nan(slots[i].gradient))
      fail(ErrorKind::tape,
           "backward: a gradient became NaN: expected finite numbers, got NaN in the gradient of input ", i, " of ",
           node.op->name, " (#", node.position, ")");
}

/// Hands the gradient of `node` on to its producers.
void propagate(Node& node) {
  Scratch& lists = scratch;
  const std::span<NodeOperand> inputs = node.inputs();
  list_operands(node, lists.operands);
  lists.slots.assign(inputs.size(), GradientSlot{});
  lists.extra_terms.clear();
  bool runs = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].producer || !inputs[i].producer->wanted) continue;
    if (passes_gradient(node, i, lists.operands[i].numel)) continue;
    lists.slots[i] = slot_for(node, i, lists);
    runs = true;
  }
  if (runs) {
    const Operand dy{node.gradient->data(), node.extents(), node.numel, node.rank, node.dtype};
    Operand y = dy;
    y.data = elements(node.output);
    const std::span<const Operand> operands(lists.operands);
    node.op->backward[int(inputs[0].dtype)](BackwardArgs{.output_gradient = dy,
                                                         .inputs = operands.first(inputs.size()),
                                                         .output = y,
                                                         .aux = operands.subspan(inputs.size()),
                                                         .input_gradients = lists.slots,
                                                         .attributes = node.attributes()});
    if (anomaly_mode) check_anomaly(node, lists.slots);
  }
  for (const auto& [producer, term] : lists.extra_terms) contribute(*producer, term);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].producer && inputs[i].producer->wanted && passes_gradient(node, i, lists.operands[i].numel))
      contribute(*inputs[i].producer, detail::retain(node.gradient));
}

// --- the walk -------------------------------------------------------------------------------------------------------

/// One differentiation: holds its nodes from construction to destruction, whatever is thrown in between.
class Walk {
 public:
  explicit Walk(std::span<Node* const> roots) : nodes_(std::exchange(scratch.nodes, {})) {
    detail::begin_walk(roots, nodes_);
  }
  ~Walk() {
    for (Node* node : nodes_) drop_gradient(*node);
    detail::end_walk(nodes_);
    if (nodes_.capacity() <= kKeptCapacity) scratch.nodes = std::move(nodes_);
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Leaves out what does not lead to `targets`, whose gradients `take` will give; leaves keep theirs unchanged.
  void want_only(std::vector<Node*> targets) {
    targets_ = std::move(targets);
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      Node& node = **it;
      node.wanted = is_target(node);
      for (const NodeOperand& input : node.inputs()) node.wanted |= input.producer && input.producer->wanted;
    }
  }

  void seed(Node& node, const Tensor& gradient) {
    if (gradient.defined()) return contribute(node, detail::retain(gradient.impl()->buffer));
    const Tensor one = ones(node.shape(), node.dtype);
    contribute(node, detail::retain(one.impl()->buffer));
  }

  void run(bool retain_graph) {
    for (Node* node : nodes_)
      if (node->gradient && node->wanted) visit(*node, retain_graph);
  }

  /// The gradient of one of the targets, undefined when nothing reached it.
  Tensor take(Node& node) {
    if (!node.gradient) return Tensor();
    unshare(node.gradient);
    return detail::adopt(detail::retain(node.gradient), node.shape(), node.dtype);
  }

 private:
  static constexpr std::size_t kKeptCapacity = 4096;

  bool is_target(const Node& node) const {
    return std::find(targets_.begin(), targets_.end(), &node) != targets_.end();
  }

  static void drop_gradient(Node& node) {
    detail::release(node.gradient);
    node.gradient = nullptr;
  }

  void visit(Node& node, bool retain_graph) {
    if (node.extra) run_hooks(node);
    const bool keeps = node.is_leaf() || (node.extra && node.extra->retain_gradient);
    if (keeps && targets_.empty()) keep_gradient(node);
    if (node.is_leaf()) return;
    check_saved(node);
    propagate(node);
    if (!retain_graph) detail::release_saved(node);
    if (targets_.empty() || !is_target(node)) drop_gradient(node);
  }

  std::vector<Node*> nodes_;
  std::vector<Node*> targets_;
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
  Walk walk(root);
  walk.seed(*root[0], gradient);
  walk.run(retain_graph);
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
  Walk walk(roots);
  walk.want_only(targets);
  for (std::size_t i = 0; i < roots.size(); ++i)
    walk.seed(*roots[i], grad_outputs.empty() ? Tensor() : grad_outputs[i]);
  walk.run(options.retain_graph);
  std::vector<Tensor> gradients;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    gradients.push_back(walk.take(*targets[i]));
    if (!gradients.back().defined() && !options.allow_unused)
      fail(ErrorKind::tape, "grad: the outputs do not depend on input ", i,
           ": expected a path from it, got none; pass allow_unused to get an undefined gradient");
  }
  return gradients;
}

AnomalyGuard::AnomalyGuard() noexcept : before_(anomaly_mode) { anomaly_mode = true; }
AnomalyGuard::~AnomalyGuard() { anomaly_mode = before_; }

}  // namespace autograd
}  // namespace taper
