#include "core/node.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace taper::detail {

using autograd::kNeedsOutput;

constinit thread_local Recorder* recorder = nullptr;

void destroy(TensorImpl* impl) noexcept {
  release(impl->buffer);
  release(impl->node);
  deallocate(impl, sizeof(TensorImpl));
}

void release_saved(Node& node) noexcept {
  if (node.saved_any) {
    for (NodeOperand& operand : node.operands()) release(std::exchange(operand.saved, nullptr));
    release(std::exchange(node.output, nullptr));
  }
  node.released = true;
}

namespace {

/// Nodes to be freed. A chain of any length is freed by this list instead of by recursion; a dead node's `gradient`
/// field is the link.
struct Dead {
  Node* next;
  bool freeing;

  void push(Node* node) {
    release(node->gradient);
    node->gradient = reinterpret_cast<Buffer*>(next);
    next = node;
  }
  Node* pop() {
    Node* const node = next;
    next = reinterpret_cast<Node*>(node->gradient);
    return node;
  }
};
constinit thread_local Dead dead{};

}  // namespace

void destroy(Node* node) noexcept {
  if (dead.freeing) return dead.push(node);
  dead.freeing = true;
  release(node->gradient);
  for (;;) {
    if (node->saved_any && !node->released) release_saved(*node);
    for (const NodeOperand& input : node->inputs())
      if (input.producer && input.producer->refs.drop()) dead.push(input.producer);
    delete node->extra;
    deallocate(node, node->block_bytes);
    if (!dead.next) break;
    node = dead.pop();
  }
  dead.freeing = false;
}

const autograd::Op leaf_op{.name = "leaf", .derivative = "accumulates into grad()", .forward = {}, .backward = {}};

namespace {

constinit thread_local std::uint64_t last_position = 0;

/// Copies two extents at a time, for which shapes have room, and so have nodes with one to spare.
std::int64_t* copy_extents(const std::int64_t* from, int rank, std::int64_t* to) {
  for (int i = 0; i < rank; i += 2) std::memcpy(to + i, from + i, 2 * sizeof(*to));
  return to + rank;
}
constexpr std::size_t kSpareExtents = 1;

std::size_t bytes_of(std::size_t n_operands, std::size_t attribute_bytes, std::size_t n_extents) {
  return sizeof(Node) + n_operands * sizeof(NodeOperand) + attribute_bytes +
         (n_extents + kSpareExtents) * sizeof(std::int64_t);
}

/// What is to be known of the inputs of a call before its node is made.
struct Links {
  std::uint32_t needs = 0;            ///< what the gradients that can be asked for will read, as in `Op::needs`
  std::uint64_t latest_position = 0;  ///< of the producers
  std::size_t n_extents = 0;          ///< of the operands

  Links(const Call& call, std::int64_t output_numel) {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorImpl& impl = *call.inputs[i].tensor->impl();
      n_extents += std::size_t(impl.shape.rank());
      if (!impl.node) continue;
      latest_position = std::max(latest_position, impl.node->position);
      if (!passes_gradient(call.op, i, impl.shape.numel(), output_numel))
        needs |= call.op.needs[std::min<std::size_t>(i, 3)];
    }
    for (const auto& extra : call.aux) n_extents += std::size_t(extra.tensor->impl()->shape.rank());
  }
};

}  // namespace

Node* new_leaf_node(const TensorImpl& impl) {
  const std::size_t bytes = bytes_of(0, 0, std::size_t(impl.shape.rank()));
  auto* node = new (allocate(bytes)) Node{.op = &leaf_op,
                                          .position = ++last_position,
                                          .numel = impl.shape.numel(),
                                          .block_bytes = std::uint32_t(bytes),
                                          .rank = std::uint8_t(impl.shape.rank()),
                                          .dtype = impl.dtype};
  copy_extents(impl.shape.begin(), impl.shape.rank(), node->extents());
  return node;
}

Node* record(const Call& call, const TensorImpl& output) {
  const std::size_t n_inputs = call.inputs.size(), n_operands = n_inputs + call.aux.size();
  const Links links(call, output.shape.numel());
  const std::size_t attribute_bytes = (call.attribute_bytes + 7) / 8 * 8;
  const std::size_t bytes = bytes_of(n_operands, attribute_bytes, std::size_t(output.shape.rank()) + links.n_extents);
  last_position = std::max(last_position, links.latest_position) + 1;
  auto* node = new (allocate(bytes)) Node{.op = &call.op,
                                          .position = last_position,
                                          .output = links.needs & kNeedsOutput ? retain(output.buffer) : nullptr,
                                          .numel = output.shape.numel(),
                                          .output_version = output.buffer->version,
                                          .block_bytes = std::uint32_t(bytes),
                                          .attribute_bytes = std::uint32_t(attribute_bytes),
                                          .n_inputs = std::uint16_t(n_inputs),
                                          .n_aux = std::uint8_t(call.aux.size()),
                                          .rank = std::uint8_t(output.shape.rank()),
                                          .dtype = output.dtype,
                                          .saved_any = links.needs != 0 || n_operands > n_inputs};
  if (call.attribute_bytes > 0) std::memcpy(node->attributes(), call.attributes, call.attribute_bytes);

  NodeOperand* to = node->operands().data();
  std::int64_t* extents = copy_extents(output.shape.begin(), output.shape.rank(), node->extents());
  const auto write = [&](const TensorImpl& from, Node* producer, bool saves) {
    *to++ = {.producer = producer,
             .saved = saves ? retain(from.buffer) : nullptr,
             .numel = from.shape.numel(),
             .version = from.buffer->version,
             .rank = std::uint8_t(from.shape.rank()),
             .dtype = from.dtype};
    extents = copy_extents(from.shape.begin(), from.shape.rank(), extents);
  };
  for (std::size_t i = 0; i < n_inputs; ++i) {
    const TensorImpl& input = *call.inputs[i].tensor->impl();
    write(input, retain(input.node), i < 31 && (links.needs >> i & 1));
  }
  for (const auto& extra : call.aux) write(*extra.tensor->impl(), nullptr, true);
  return node;
}

}  // namespace taper::detail
