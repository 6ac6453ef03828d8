#include "core/node.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace taper::detail {

using autograd::Operand;

void destroy(TensorImpl* impl) noexcept {
  release(impl->buffer);
  release(impl->node);
  deallocate(impl, sizeof(TensorImpl));
}

Tensor adopt(Buffer* buffer, const Shape& shape, DType dtype) {
  return Tensor(new (allocate(sizeof(TensorImpl))) TensorImpl{
      .refs = {}, .dtype = dtype, .history = buffer->history, .buffer = buffer, .shape = shape});
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
  dead.push(node);
  if (dead.freeing) return;
  dead.freeing = true;
  while (dead.next) {
    Node* const last = dead.pop();
    if (!last->released) release_saved(*last);
    for (const NodeOperand& input : last->inputs())
      if (input.producer && input.producer->refs.drop()) dead.push(input.producer);
    delete last->extra;
    deallocate(last, last->block_bytes);
  }
  dead.freeing = false;
}

const autograd::Op leaf_op{.name = "leaf", .derivative = "accumulates into grad()", .forward = {}, .backward = {}};

namespace {

constinit thread_local std::uint64_t last_position = 0;

/// Copies four extents at a time, which is a move or two: a shape has room for eight, and a node's block for three more
/// than its own.
std::int64_t* copy_extents(const std::int64_t* from, int rank, std::int64_t* to) {
  for (int d = 0; d < rank; d += 4) std::memcpy(to + d, from + d, 4 * sizeof(*to));
  return to + rank;
}
constexpr std::size_t kSpareExtents = 3;

std::size_t bytes_of(std::size_t n_operands, std::size_t attribute_bytes, std::size_t n_extents) {
  return sizeof(Node) + n_operands * sizeof(NodeOperand) + attribute_bytes +
         (n_extents + kSpareExtents) * sizeof(std::int64_t);
}

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
  const std::size_t n_inputs = call.inputs.size();
  std::uint32_t needs = 0;  // what the gradients that can be asked for will read, as in `Op::needs`
  std::uint64_t position = last_position;
  std::size_t n_extents = std::size_t(output.shape.rank());
  for (const Operand& operand : call.operands) n_extents += std::size_t(operand.rank);
  for (std::size_t i = 0; i < n_inputs; ++i) {
    const Node* producer = call.inputs[i].tensor->impl()->node;
    if (!producer) continue;
    position = std::max(position, producer->position);
    if (!passes_gradient(call.op, i, call.operands[i].numel, output.shape.numel()))
      needs |= call.op.needs[std::min<std::size_t>(i, 3)];
  }
  last_position = ++position;

  const std::size_t attribute_bytes = (call.attribute_bytes + 7) / 8 * 8;
  const std::size_t bytes = bytes_of(call.operands.size(), attribute_bytes, n_extents);
  auto* node = new (allocate(bytes)) Node{.op = &call.op,
                                          .position = position,
                                          .output = needs & autograd::kNeedsOutput ? retain(output.buffer) : nullptr,
                                          .numel = output.shape.numel(),
                                          .output_version = output.buffer->version,
                                          .block_bytes = std::uint32_t(bytes),
                                          .attribute_bytes = std::uint32_t(attribute_bytes),
                                          .n_inputs = std::uint16_t(n_inputs),
                                          .n_aux = std::uint8_t(call.aux.size()),
                                          .rank = std::uint8_t(output.shape.rank()),
                                          .dtype = output.dtype,
                                          .saved_any = needs != 0 || !call.aux.empty()};
  if (call.attribute_bytes > 0) std::memcpy(node->attributes(), call.attributes, call.attribute_bytes);

  std::int64_t* extents = copy_extents(output.shape.begin(), output.shape.rank(), node->extents());
  NodeOperand* const operands = node->operands().data();
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& from = call.operands[i];
    const bool is_input = i < n_inputs;
    const TensorImpl& impl = *(is_input ? call.inputs[i] : call.aux[i - n_inputs]).tensor->impl();
    const bool saves = !is_input || (i < 31 && (needs >> i & 1));
    operands[i] = {.producer = is_input ? retain(impl.node) : nullptr,
                   .saved = saves ? retain(impl.buffer) : nullptr,
                   .numel = from.numel,
                   .version = impl.buffer->version,
                   .rank = std::uint8_t(from.rank),
                   .dtype = from.dtype};
    extents = copy_extents(from.extents, from.rank, extents);
  }
  return node;
}

}  // namespace taper::detail
