#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/memory.hpp"
#include "taper/autograd.hpp"

namespace taper::detail {

// --- counted memory -------------------------------------------------------------------------------------------------

class Recorder;
/// What writes down the step that this thread captures; null, nearly always (see `capture.hpp`).
extern constinit thread_local Recorder* recorder;
void tell_made(Buffer* buffer);
void tell_freed(Buffer* buffer) noexcept;

inline Buffer* new_buffer(std::size_t bytes) {
  auto* buffer = new (allocate(sizeof(Buffer) + bytes)) Buffer;
  buffer->bytes = bytes;
  if (recorder) [[unlikely]]
    tell_made(buffer);
  return buffer;
}
inline void destroy(Buffer* buffer) noexcept {
  if (recorder) [[unlikely]]
    tell_freed(buffer);
  deallocate(buffer, sizeof(Buffer) + buffer->bytes);
}

inline Buffer* retain(Buffer* buffer) noexcept {
  buffer->refs.add();
  return buffer;
}
inline void release(Buffer* buffer) noexcept {
  if (buffer && buffer->refs.drop()) destroy(buffer);
}

/// A tensor around a counted buffer, whose count it takes over.
inline Tensor adopt(Buffer* buffer, const Shape& shape, DType dtype) {
  return Tensor(new (allocate(sizeof(TensorImpl))) TensorImpl{
      .refs = {}, .dtype = dtype, .history = buffer->history, .buffer = buffer, .shape = shape});
}

[[noreturn]] void fail_bytes(const Shape& shape);

/// A tensor whose elements are to be written. Errors: `ErrorKind::shape` when their bytes overflow 64 bits.
[[gnu::always_inline]] inline Tensor new_tensor(const Shape& shape, DType dtype) {
  std::int64_t bytes;
  if (__builtin_mul_overflow(shape.numel(), std::int64_t(size_of(dtype)), &bytes)) [[unlikely]]
    fail_bytes(shape);
  return adopt(new_buffer(std::size_t(bytes)), shape, dtype);
}

// --- the recorded graph ---------------------------------------------------------------------------------------------

class Walk;

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
  std::uint8_t own_extents;  ///< `rank`, or none where the output's are the same
  DType dtype;
};

/// One recorded application of an op, in one block of memory: this header, the operands (inputs, then aux, then the
/// output if a gradient reads it), the attributes, and the extents (the output's first, then each operand's).
/// Nodes point to their producers only, so dropping the last result frees a whole chain.
///
/// Long graphs do not fit the caches: the header fills one line, and most arithmetic one more.
struct Node {
  const autograd::Op* op;  ///< `leaf_op` for a tensor the user made
  std::uint64_t position;  ///< larger than that of every producer
  RefCount refs = {};
  std::uint32_t last_consumer = 0;          ///< low bits of the position of the node that last wrote its gradient
  std::atomic<const Walk*> walk = nullptr;  ///< the walk that holds it now, if any
  Buffer* gradient = nullptr;               ///< what that walk has gathered so far
  NodeExtra* extra = nullptr;               ///< owned; null for most
  std::int64_t numel;                       ///< of the output
  std::uint16_t attribute_words = 0;        ///< of 8 bytes
  std::uint16_t n_inputs = 0;
  std::uint8_t n_aux = 0, rank;
  DType dtype : 4;
  bool saves_output : 1 = false;
  bool saved_any : 1 = false;  ///< some gradient reads a saved value
  bool released : 1 = false;   ///< a backward has freed the saved values
  bool target : 1 = false;     ///< of a walk: its own gradient was asked for by `grad`
  bool wanted = false;         ///< of a walk: leads to a gradient that was asked for

  std::span<NodeOperand> operands() {
    return {reinterpret_cast<NodeOperand*>(this + 1), std::size_t(n_inputs + n_aux)};
  }
  std::span<NodeOperand> inputs() { return operands().first(n_inputs); }
  std::span<NodeOperand> operands_and_output() {
    return {operands().data(), std::size_t(n_inputs + n_aux + saves_output)};
  }
  /// What a gradient reads of the output; null for most.
  const NodeOperand* output() { return saves_output ? operands().data() + operands().size() : nullptr; }
  std::byte* attributes() {
    const std::span<NodeOperand> before = operands_and_output();
    return reinterpret_cast<std::byte*>(before.data() + before.size());
  }
  std::int64_t* extents() { return reinterpret_cast<std::int64_t*>(attributes()) + attribute_words; }
  Shape shape() { return Shape(std::span<const std::int64_t>(extents(), rank)); }
  bool is_leaf() const { return n_inputs == 0; }
  NodeExtra& ensure_extra() {
    if (!extra) extra = new NodeExtra;
    return *extra;
  }
};
static_assert(sizeof(Node) == kAlignment);

/// Goes through the operands of a node, one after the other, for their shapes.
class OperandShapes {
 public:
  struct Extents {
    const std::int64_t* extents;
    std::int64_t numel;
  };

  explicit OperandShapes(Node& node) : output_{node.extents(), node.numel}, next_(output_.extents + node.rank) {}

  Extents next(const NodeOperand& operand) { return operand.own_extents != operand.rank ? output_ : next_own(operand); }

 private:
  Extents next_own(const NodeOperand& operand);

  Extents output_;
  const std::int64_t* next_;
};

extern const autograd::Op leaf_op;

/// Whether input `i` gets the gradient of the output as it is.
inline bool passes_gradient(const autograd::Op& op, std::size_t i, std::int64_t numel, std::int64_t output_numel) {
  return i < 32 && (op.passes_gradient >> i & 1) && numel == output_numel;
}

/// One call of an op.
struct Call {
  const autograd::Op& op;
  std::span<const autograd::Input> inputs, aux;
  const void* attributes;
  std::size_t attribute_bytes;
};

Node* new_leaf_node(const TensorImpl& impl);
/// The node of the `output` of a call, with what its gradients will read.
Node* record(const Call& call, const TensorImpl& output);
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

}  // namespace taper::detail
