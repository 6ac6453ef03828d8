#include <array>

#include "base/fail.hpp"
#include "core/node.hpp"
#include "taper/creation.hpp"

namespace taper::autograd {

using detail::Node;
using detail::TensorImpl;

namespace {

constinit thread_local bool grad_enabled = true;

/// Operands for a call: on the stack for the usual few, in a list for `cat` and its like.
class OperandList {
 public:
  explicit OperandList(std::size_t n) {
    if (n > few_.size()) [[unlikely]]
      many_.resize(n);
  }
  Operand* data() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<Operand, 6> few_;
  std::vector<Operand> many_;
};

Operand operand_of(const TensorImpl& impl) {
  return {impl.buffer->data(), impl.shape.begin(), impl.shape.numel(), impl.shape.rank(), impl.dtype};
}

[[noreturn, gnu::cold]] void fail_dtype(const Op& op, DType dtype) {
  std::string expected;
  for (int i = 0; i < kDTypeCount; ++i)
    if (op.forward[i]) expected += (expected.empty() ? "" : " or ") + std::string(name_of(DType(i)));
  fail(ErrorKind::type, op.name, ": element type not supported: expected ", expected, ", got ", dtype,
       "; convert with to()");
}

void check_inputs(const Op& op, std::span<const Input> inputs) {
  const DType first = inputs[0].tensor->dtype();
  if (!op.forward[int(first)]) [[unlikely]]
    fail_dtype(op, first);
  for (const Input& input : inputs.subspan(1)) {
    const DType other = input.tensor->dtype();
    if (other != first && is_floating(other) && is_floating(first)) [[unlikely]]
      fail(ErrorKind::type, op.name, ": element types differ: expected ", first, ", got ", other,
           "; convert with to()");
  }
}

/// Whether a call is to be recorded. Refuses a value whose history was rewritten through another view of its data.
bool records(const Op& op, std::span<const Input> inputs, DType output) {
  if (!grad_enabled || !is_floating(output)) return false;
  bool any = false;
  for (const Input& input : inputs) {
    const TensorImpl& impl = *input.tensor->impl();
    if (!impl.node) continue;
    any = true;
    if (impl.history != impl.buffer->history) [[unlikely]]
      fail(ErrorKind::tape, op.name,
           ": an input was changed in place through another view of its data: expected history ", impl.history,
           ", got ", impl.buffer->history, "; make the view after the change");
  }
  return any && op.backward[int(inputs[0].tensor->dtype())];
}

void run_forward(const Op& op, std::span<const Input> inputs, const TensorImpl& output, const void* attributes,
                 std::span<const Input> aux) {
  OperandList list(inputs.size() + aux.size());
  Operand* operand = list.data();
  for (const Input& input : inputs) *operand++ = operand_of(*input.tensor->impl());
  for (const Input& extra : aux) *operand++ = operand_of(*extra.tensor->impl());
  op.forward[int(inputs[0].tensor->dtype())](ForwardArgs{.inputs = {list.data(), inputs.size()},
                                                         .output = operand_of(output),
                                                         .aux = {list.data() + inputs.size(), aux.size()},
                                                         .attributes = attributes});
}

}  // namespace

bool is_grad_enabled() noexcept { return grad_enabled; }

GradModeGuard::GradModeGuard(bool enabled) noexcept : before_(grad_enabled) { grad_enabled = enabled; }
GradModeGuard::~GradModeGuard() { grad_enabled = before_; }

Tensor apply(const Op& op, std::span<const Input> inputs, const Shape& output_shape, DType output_dtype,
             const void* attributes, std::size_t attribute_bytes, std::span<const Input> aux) {
  check_inputs(op, inputs);
  const bool recorded = records(op, inputs, output_dtype);
  Tensor output = empty(output_shape, output_dtype);
  run_forward(op, inputs, *output.impl(), attributes, aux);
  if (recorded) output.impl()->node = record(op, inputs, *output.impl(), attributes, attribute_bytes, aux);
  return output;
}

void apply_in_place(const Op& op, std::span<const Input> inputs, const void* attributes, std::size_t attribute_bytes) {
  check_inputs(op, inputs);
  TensorImpl& target = *inputs[0].tensor->impl();
  const bool recorded = records(op, inputs, target.dtype);
  if (grad_enabled && target.node && target.node->is_leaf()) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a leaf that requires grad was changed in place: expected grad mode off, got on; use "
         "NoGradGuard");
  if (grad_enabled && target.is_view) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a view of a tensor that requires grad was changed in place: expected a tensor with "
         "data of its own, got a view; clone() it first or use NoGradGuard");
  Node* node = recorded ? record(op, inputs, target, attributes, attribute_bytes, {}) : nullptr;
  run_forward(op, inputs, target, attributes, {});
  ++target.buffer->version;
  if (node) {
    node->output_version = target.buffer->version;
    detail::release(target.node);
    target.node = node;
    target.history = ++target.buffer->history;
  }
}

namespace {

void copy_gradient(const BackwardArgs&) {}  // never called: the gradient passes through

}  // namespace

Tensor share_as(const Tensor& input, const Shape& shape) {
  static constexpr Op op{.name = "reshape",
                         .derivative = "dx = dy in the shape of x",
                         .forward = {},
                         .backward = {copy_gradient, copy_gradient, nullptr},
                         .passes_gradient = 1};
  const Input inputs[] = {input};
  TensorImpl& source = *input.impl();
  Tensor output = detail::adopt(detail::retain(source.buffer), shape, source.dtype);
  output.impl()->is_view = source.is_view || source.node;
  if (records(op, inputs, source.dtype)) output.impl()->node = record(op, inputs, *output.impl(), nullptr, 0, {});
  return output;
}

}  // namespace taper::autograd
