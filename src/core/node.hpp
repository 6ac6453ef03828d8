#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "taper/autograd.hpp"

namespace taper::detail {

// --- counted memory -------------------------------------------------------------------------------------------------

Buffer* new_buffer(std::size_t bytes);
void destroy(Buffer* buffer) noexcept;

inline Buffer* retain(Buffer* buffer) noexcept {
  buffer->refs.add();
  return buffer;
}
inline void release(Buffer* buffer) noexcept {
  if (buffer && buffer->refs.drop()) destroy(buffer);
}

/// A tensor around a counted buffer, whose count it takes over.
Tensor adopt(Buffer* buffer, const Shape& shape, DType dtype);

// --- the recorded graph ---------------------------------------------------------------------------------------------

/// What only some nodes have: leaves, and tensors with `retain_grad`, hooks or a name.
struct NodeExtra {
  Tensor gradient;
  bool retain_gradient = false;
  std::vector<std::unique_ptr<GradientHook>> hooks;
  std::string name;
};

/// One operand of a recorded operation: who produced it, and its value if a gradient will read it.
struct NodeOperand {
  Node* producer;         ///< counted; null when it requires no gradient
  Buffer* saved;          ///< counted; null when not needed
  std::uint32_t version;  ///< of the buffer, when it was saved
  std::uint8_t rank;
  DType dtype;
};

/// One recorded application of an op, in one block of memory: this header, the operands (inputs, then aux), the
/// attributes, and the extents (the output's first, then each operand's).
/// Nodes point to their producers only, so dropping the last result frees a whole chain.
struct Node {
  const autograd::Op* op;  ///< `leaf_op` for a tensor the user made
  std::uint64_t position;  ///< larger than that of every producer
  RefCount refs;
  std::atomic<std::uint32_t> walk;  ///< the differentiation that visits it now; 0: none
  Buffer* gradient;                 ///< what that differentiation has gathered so far
  NodeExtra* extra;                 ///< owned; null for most
  Buffer* output;                   ///< counted; null unless a gradient reads the output
  std::int64_t numel;               ///< of the output
  std::uint32_t output_version;
  std::uint32_t last_consumer;  ///< low bits of the position of the node that last wrote its gradient
  std::uint32_t block_bytes;
  std::uint32_t attribute_bytes;  ///< rounded up to 8
  std::uint16_t n_inputs;
  std::uint8_t n_aux, rank;
  DType dtype;
  bool saved_any;  ///< some gradient reads a saved value
  bool released;   ///< a backward has freed the saved values
  bool wanted;     ///< leads to a gradient that was asked for

  std::span<NodeOperand> operands() {
    return {reinterpret_cast<NodeOperand*>(this + 1), std::size_t(n_inputs + n_aux)};
  }
  std::span<NodeOperand> inputs() { return operands().first(n_inputs); }
  std::byte* attributes() { return reinterpret_cast<std::byte*>(operands().data() + operands().size()); }
  std::int64_t* extents() { return reinterpret_cast<std::int64_t*>(attributes() + attribute_bytes); }
  Shape shape() { return Shape(std::span<const std::int64_t>(extents(), rank)); }
  bool is_leaf() const { return n_inputs == 0; }
  NodeExtra& ensure_extra() {
    if (!extra) extra = new NodeExtra;
    return *extra;
  }
};

extern const autograd::Op leaf_op;

Node* new_leaf_node(const TensorImpl& impl);
/// The node of a fresh `output` that `op` made of `inputs`, with what its gradients will read.
Node* record(const autograd::Op& op, std::span<const autograd::Input> inputs, const TensorImpl& output,
             const void* attributes, std::size_t attribute_bytes, std::span<const autograd::Input> aux);
void destroy(Node* node) noexcept;

inline Node* retain(Node* node) noexcept {
  if (node) node->refs.add();
  return node;
}
inline void release(Node* node) noexcept {
  if (node && node->refs.drop()) destroy(node);
}

/// Frees the saved values; their memory is not needed any more.
void release_saved(Node& node) noexcept;

/// The nodes behind `roots`, latest first, held by this walk until `end_walk`. Walks of several threads over shared
/// nodes take turns. Errors: `ErrorKind::tape` when a hook walks the graph it is called from.
void begin_walk(std::span<Node* const> roots, std::vector<Node*>& nodes);
void end_walk(std::vector<Node*>& nodes) noexcept;

}  // namespace taper::detail
