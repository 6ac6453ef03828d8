#include "core/node.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/fail.hpp"

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
    for (NodeOperand& operand : node.operands_and_output()) release(std::exchange(operand.saved, nullptr));
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

constexpr std::size_t kSpareExtents = 1;  // they are copied two at a time

std::size_t bytes_of(std::size_t n_operands, std::size_t attribute_words, std::size_t n_extents) {
  return sizeof(Node) + n_operands * sizeof(NodeOperand) +
         (attribute_words + n_extents + kSpareExtents) * sizeof(std::int64_t);
}

}  // namespace

void destroy(Node* node) noexcept {
  if (dead.freeing) return dead.push(node);
  dead.freeing = true;
  release(node->gradient);
  for (;;) {
    if (node->saved_any && !node->released) release_saved(*node);
    std::size_t n_extents = node->rank;
    for (const NodeOperand& operand : node->operands()) {
      if (operand.producer && operand.producer->refs.drop()) dead.push(operand.producer);
      n_extents += operand.own_extents;
    }
    delete node->extra;
    deallocate(node, bytes_of(node->operands_and_output().size(), node->attribute_words, n_extents));
    if (!dead.next) break;
    node = dead.pop();
  }
  dead.freeing = false;
}

[[gnu::noinline]] OperandShapes::Extents OperandShapes::next_own(const NodeOperand& operand) {
  Extents own{next_, 1};
  for (int i = 0; i < operand.rank; ++i) own.numel *= *next_++;
  return own;
}

const autograd::Op leaf_op{.name = "leaf", .derivative = "accumulates into grad()", .forward = {}, .backward = {}};

namespace {

constinit thread_local std::uint64_t last_position = 0;

/// Copies two at a time, for which shapes have room too.
std::int64_t* copy_extents(const std::int64_t* from, int rank, std::int64_t* to) {
  for (int i = 0; i < rank; i += 2) std::memcpy(to + i, from + i, 2 * sizeof(*to));
  return to + rank;
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_attributes(const autograd::Op& op, std::size_t bytes,
                                                            std::size_t most) {
  fail(ErrorKind::tape, op.name, ": attributes are too large to be recorded: expected at most ", most, " bytes, got ",
       bytes);
}

/// What is to be known of the inputs of a call before its node is made.
struct Links {
  std::uint32_t needs = 0;            ///< what the gradients that can be asked for will read, as in `Op::needs`
  std::uint64_t latest_position = 0;  ///< of the producers
  std::size_t n_extents = 0;          ///< of the operands that have their own
  std::uint32_t like_output = 0;      ///< bit i: operand i has the output's

  Links(const Call& call, const Shape& output) {
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorImpl& impl = *call.inputs[i].tensor->impl();
      count_extents(i, impl.shape, output);
      if (!impl.node) continue;
      latest_position = std::max(latest_position, impl.node->position);
      if (!passes_gradient(call.op, i, impl.shape.numel(), output.numel()))
        needs |= call.op.needs[std::min<std::size_t>(i, 3)];
    }
    std::size_t index = call.inputs.size();
    for (const auto& extra : call.aux) count_extents(index++, extra.tensor->impl()->shape, output);
  }

 private:
  void count_extents(std::size_t index, const Shape& shape, const Shape& output) {
    if (index < 32 && shape == output)
      like_output |= 1u << index;
    else
      n_extents += std::size_t(shape.rank());
  }
};

}  // namespace

Node* new_leaf_node(const TensorImpl& impl) {
  const std::size_t bytes = bytes_of(0, 0, std::size_t(impl.shape.rank()));
  auto* node = new (allocate(bytes)) Node{.op = &leaf_op,
                                          .position = ++last_position,
                                          .numel = impl.shape.numel(),
                                          .rank = std::uint8_t(impl.shape.rank()),
                                          .dtype = impl.dtype};
  copy_extents(impl.shape.begin(), impl.shape.rank(), node->extents());
  return node;
}

Node* record(const Call& call, const TensorImpl& output) {
  const std::size_t n_inputs = call.inputs.size(), n_operands = n_inputs + call.aux.size();
  const Links links(call, output.shape);
  const bool saves_output = links.needs & kNeedsOutput;
  const std::size_t attribute_words = (call.attribute_bytes + 7) / 8;
  constexpr std::size_t most_words = UINT16_MAX;
  if (attribute_words > most_words) [[unlikely]]
    fail_attributes(call.op, call.attribute_bytes, 8 * most_words);
  const std::size_t bytes =
      bytes_of(n_operands + saves_output, attribute_words, std::size_t(output.shape.rank()) + links.n_extents);
  last_position = std::max(last_position, links.latest_position) + 1;
  auto* node = new (allocate(bytes)) Node{.op = &call.op,
                                          .position = last_position,
                                          .numel = output.shape.numel(),
                                          .attribute_words = std::uint16_t(attribute_words),
                                          .n_inputs = std::uint16_t(n_inputs),
                                          .n_aux = std::uint8_t(call.aux.size()),
                                          .rank = std::uint8_t(output.shape.rank()),
                                          .dtype = output.dtype,
                                          .saves_output = saves_output,
                                          .saved_any = links.needs != 0 || n_operands > n_inputs};
  if (call.attribute_bytes > 0) std::memcpy(node->attributes(), call.attributes, call.attribute_bytes);

  NodeOperand* to = node->operands().data();
  std::int64_t* extents = copy_extents(output.shape.begin(), output.shape.rank(), node->extents());
  const auto write = [&](std::size_t index, const TensorImpl& from, Node* producer, bool saves) {
    const int own_extents = index < 32 && (links.like_output >> index & 1) ? 0 : from.shape.rank();
    *to++ = {.producer = producer,
             .saved = saves ? retain(from.buffer) : nullptr,
             .version = from.buffer->version,
             .rank = std::uint8_t(from.shape.rank()),
             .own_extents = std::uint8_t(own_extents),
             .dtype = from.dtype};
    if (own_extents > 0) extents = copy_extents(from.shape.begin(), own_extents, extents);
  };
  for (std::size_t i = 0; i < n_inputs; ++i) {
    const TensorImpl& input = *call.inputs[i].tensor->impl();
    write(i, input, retain(input.node), i < 31 && (links.needs >> i & 1));
  }
  std::size_t index = n_inputs;
  for (const auto& extra : call.aux) write(index++, *extra.tensor->impl(), nullptr, true);
  if (saves_output)
    *to = {.producer = nullptr,
           .saved = retain(output.buffer),
           .version = output.buffer->version,
           .rank = node->rank,
           .own_extents = 0,
           .dtype = output.dtype};
  return node;
}

}  // namespace taper::detail
