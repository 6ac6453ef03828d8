#include "core/node.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

#include "base/fail.hpp"
#include "core/memory.hpp"

namespace taper::detail {

Buffer* new_buffer(std::size_t bytes) {
  auto* buffer = new (allocate(sizeof(Buffer) + bytes)) Buffer;
  buffer->bytes = bytes;
  return buffer;
}

void destroy(Buffer* buffer) noexcept { deallocate(buffer, sizeof(Buffer) + buffer->bytes); }

void destroy(TensorImpl* impl) noexcept {
  release(impl->buffer);
  release(impl->node);
  deallocate(impl, sizeof(TensorImpl));
}

Tensor adopt(Buffer* buffer, const Shape& shape, DType dtype) {
  auto* impl = new (allocate(sizeof(TensorImpl))) TensorImpl;
  impl->dtype = dtype;
  impl->buffer = buffer;
  impl->history = buffer->history;
  impl->shape = shape;
  return Tensor(impl);
}

void release_saved(Node& node) noexcept {
  for (NodeOperand& operand : node.operands()) {
    release(operand.saved);
    operand.saved = nullptr;
  }
  release(node.output);
  node.output = nullptr;
  node.released = true;
}

void destroy(Node* node) noexcept {
  // A chain of any length is freed by a list instead of by recursion; a dead node's `gradient` field is the link.
  thread_local Node* pending = nullptr;
  thread_local bool draining = false;
  release(node->gradient);
  node->gradient = reinterpret_cast<Buffer*>(pending);
  pending = node;
  if (draining) return;
  draining = true;
  while (pending) {
    Node* dead = pending;
    pending = reinterpret_cast<Node*>(dead->gradient);
    release_saved(*dead);
    for (NodeOperand& input : dead->inputs()) release(input.producer);
    delete dead->extra;
    deallocate(dead, dead->block_bytes);
  }
  draining = false;
}

const autograd::Op leaf_op{.name = "leaf", .derivative = "accumulates into grad()", .forward = {}, .backward = {}};

namespace {
thread_local std::uint64_t last_position = 0;
}

Node* new_leaf_node(const TensorImpl& impl) {
  const std::size_t bytes = sizeof(Node) + 8 * std::size_t(impl.shape.rank());
  auto* node = new (allocate(bytes)) Node{};
  node->op = &leaf_op;
  node->position = ++last_position;
  node->numel = impl.shape.numel();
  node->block_bytes = std::uint32_t(bytes);
  node->rank = std::uint8_t(impl.shape.rank());
  node->dtype = impl.dtype;
  std::copy(impl.shape.begin(), impl.shape.end(), node->extents());
  return node;
}

namespace {

std::uint32_t needs_of(const autograd::Op& op, std::size_t input) { return op.needs[std::min<std::size_t>(input, 3)]; }

/// What the gradients that can be asked for will read: bits as in `Op::needs`.
std::uint32_t needed_values(const autograd::Op& op, std::span<const autograd::Input> inputs,
                            std::int64_t output_numel) {
  std::uint32_t needs = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    if (!impl.node) continue;
    const bool passes = i < 32 && (op.passes_gradient >> i & 1) && impl.shape.numel() == output_numel;
    if (!passes) needs |= needs_of(op, i);
  }
  return needs;
}

void write_operand(NodeOperand& operand, const TensorImpl& impl, bool producer, bool save, std::int64_t*& extents) {
  operand.producer = producer ? retain(impl.node) : nullptr;
  operand.saved = save ? retain(impl.buffer) : nullptr;
  operand.version = impl.buffer->version;
  operand.rank = std::uint8_t(impl.shape.rank());
  operand.dtype = impl.dtype;
  extents = std::copy(impl.shape.begin(), impl.shape.end(), extents);
}

}  // namespace

Node* record(const autograd::Op& op, std::span<const autograd::Input> inputs, const TensorImpl& output,
             const void* attributes, std::size_t attribute_bytes, std::span<const autograd::Input> aux) {
  std::size_t n_extents = std::size_t(output.shape.rank());
  for (const auto& input : inputs) n_extents += std::size_t(input.tensor->impl()->shape.rank());
  for (const auto& extra : aux) n_extents += std::size_t(extra.tensor->impl()->shape.rank());
  const std::size_t padded_attributes = (attribute_bytes + 7) / 8 * 8;
  const std::size_t bytes =
      sizeof(Node) + (inputs.size() + aux.size()) * sizeof(NodeOperand) + padded_attributes + 8 * n_extents;
  const std::uint32_t needs = needed_values(op, inputs, output.shape.numel());

  auto* node = new (allocate(bytes)) Node{};
  node->op = &op;
  node->numel = output.shape.numel();
  node->block_bytes = std::uint32_t(bytes);
  node->attribute_bytes = std::uint32_t(padded_attributes);
  node->n_inputs = std::uint16_t(inputs.size());
  node->n_aux = std::uint8_t(aux.size());
  node->rank = std::uint8_t(output.shape.rank());
  node->dtype = output.dtype;
  node->saved_any = needs != 0 || !aux.empty();
  if (attribute_bytes > 0) std::memcpy(node->attributes(), attributes, attribute_bytes);

  std::int64_t* extents = std::copy(output.shape.begin(), output.shape.end(), node->extents());
  NodeOperand* operand = node->operands().data();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    write_operand(*operand++, impl, true, i < 31 && (needs >> i & 1), extents);
    if (impl.node) last_position = std::max(last_position, impl.node->position);
  }
  for (const auto& extra : aux) write_operand(*operand++, *extra.tensor->impl(), false, true, extents);
  if (needs & autograd::kNeedsOutput) node->output = retain(output.buffer);
  node->output_version = output.buffer->version;
  node->position = ++last_position;
  return node;
}

namespace {

thread_local std::vector<std::uint32_t> active_walks;  // of this thread; several when a hook differentiates

std::uint32_t next_walk() {
  static std::atomic<std::uint32_t> walks{0};
  std::uint32_t walk = 0;
  while (walk == 0) walk = walks.fetch_add(1, std::memory_order_relaxed) + 1;
  return walk;
}

void unmark(std::vector<Node*>& nodes) noexcept {
  for (Node* node : nodes) node->walk.store(0, std::memory_order_release);
}

/// Marks `node` and appends it, unless it is marked already. False when another walk holds it.
bool visit(Node* node, std::uint32_t walk, std::vector<Node*>& nodes) {
  std::uint32_t holder = 0;
  if (node->walk.compare_exchange_strong(holder, walk, std::memory_order_acquire)) {
    node->wanted = true;
    nodes.push_back(node);
    return true;
  }
  if (holder == walk) return true;
  if (std::find(active_walks.begin(), active_walks.end(), holder) != active_walks.end()) {
    unmark(nodes);
    fail(ErrorKind::tape,
         "backward: called from a hook on a graph that is being differentiated: expected another graph, "
         "got op ",
         node->op->name);
  }
  return false;
}

bool try_walk(std::span<Node* const> roots, std::uint32_t walk, std::vector<Node*>& nodes) {
  for (Node* root : roots)
    if (!visit(root, walk, nodes)) return false;
  // The list is its own queue: what is in it is marked, what it reaches is appended.
  for (std::size_t next = 0; next < nodes.size(); ++next)
    for (const NodeOperand& input : nodes[next]->inputs())
      if (input.producer && !visit(input.producer, walk, nodes)) return false;
  return true;
}

}  // namespace

void begin_walk(std::span<Node* const> roots, std::vector<Node*>& nodes) {
  const std::uint32_t walk = next_walk();
  nodes.clear();
  while (!try_walk(roots, walk, nodes)) {  // another thread differentiates a part of this graph: after it
    unmark(nodes);
    nodes.clear();
    std::this_thread::yield();
  }
  active_walks.push_back(walk);
  const auto later = [](const Node* a, const Node* b) { return a->position > b->position; };
  if (!std::is_sorted(nodes.begin(), nodes.end(), later)) std::sort(nodes.begin(), nodes.end(), later);
}

void end_walk(std::vector<Node*>& nodes) noexcept {
  unmark(nodes);
  active_walks.pop_back();
}

}  // namespace taper::detail
