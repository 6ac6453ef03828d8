#include "base/fail.hpp"
#include "core/call_list.hpp"
#include "core/node.hpp"
#include "taper/creation.hpp"

namespace taper::autograd {

using detail::Call;
using detail::CallList;
using detail::Node;
using detail::TensorImpl;

namespace {

constinit thread_local bool grad_enabled = true;

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

[[noreturn, gnu::cold]] void fail_mixed(const Op& op, DType first, DType other) {
  fail(ErrorKind::type, op.name, ": element types differ: expected ", first, ", got ", other, "; convert with to()");
}

[[noreturn, gnu::cold]] void fail_history(const Op& op, const TensorImpl& impl) {
  fail(ErrorKind::tape, op.name, ": an input was changed in place through another view of its data: expected history ",
       impl.history, ", got ", impl.buffer->history, "; make the view after the change");
}

/// Lists the operands of a call and checks their element types. True when the call is to be recorded: then it also
/// refuses a value whose history was rewritten through another view of its data.
bool prepare(const Op& op, std::span<const Input> inputs, std::span<const Input> aux, DType output,
             CallList<Operand>& operands) {
  const DType first = inputs[0].tensor->dtype();
  if (!op.forward[int(first)]) [[unlikely]]
    fail_dtype(op, first);
  const bool recording = grad_enabled && is_floating(output) && op.backward[int(first)];
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = inputs[i].tensor->dtype();
    if (dtype != first && is_floating(dtype) && is_floating(first)) [[unlikely]]
      fail_mixed(op, first, dtype);
    const TensorImpl& impl = *inputs[i].tensor->impl();
    if (recording && impl.node) {
      any = true;
      if (impl.history != impl.buffer->history) [[unlikely]]
        fail_history(op, impl);
    }
    operands.set(i, operand_of(impl));
  }
  for (std::size_t i = 0; i < aux.size(); ++i) operands.set(inputs.size() + i, operand_of(*aux[i].tensor->impl()));
  return any;
}

void run_forward(const Call& call, const TensorImpl& output) {
  const std::size_t n = call.inputs.size();
  call.op.forward[int(call.operands[0].dtype)](ForwardArgs{.inputs = call.operands.first(n),
                                                           .output = operand_of(output),
                                                           .aux = call.operands.subspan(n),
                                                           .attributes = call.attributes});
}

}  // namespace

bool is_grad_enabled() noexcept { return grad_enabled; }

GradModeGuard::GradModeGuard(bool enabled) noexcept : before_(grad_enabled) { grad_enabled = enabled; }
GradModeGuard::~GradModeGuard() { grad_enabled = before_; }

Tensor apply(const Op& op, std::span<const Input> inputs, const Shape& output_shape, DType output_dtype,
             const void* attributes, std::size_t attribute_bytes, std::span<const Input> aux) {
  CallList<Operand> operands(inputs.size() + aux.size());
  const bool recorded = prepare(op, inputs, aux, output_dtype, operands);
  Tensor output = empty(output_shape, output_dtype);
  const Call call{op, inputs, aux, operands.all(), attributes, attribute_bytes};
  run_forward(call, *output.impl());
  if (recorded) output.impl()->node = record(call, *output.impl());
  return output;
}

void apply_in_place(const Op& op, std::span<const Input> inputs, const void* attributes, std::size_t attribute_bytes) {
  CallList<Operand> operands(inputs.size());
  const bool recorded = prepare(op, inputs, {}, inputs[0].tensor->dtype(), operands);
  TensorImpl& target = *inputs[0].tensor->impl();
  if (grad_enabled && target.node && target.node->is_leaf()) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a leaf that requires grad was changed in place: expected grad mode off, got on; use "
         "NoGradGuard");
  if (grad_enabled && target.is_view) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a view of a tensor that requires grad was changed in place: expected a tensor with "
         "data of its own, got a view; clone() it first or use NoGradGuard");
  const Call call{op, inputs, {}, operands.all(), attributes, attribute_bytes};
  Node* node = recorded ? record(call, target) : nullptr;
  run_forward(call, target);
  ++target.buffer->version;
  if (node) {
    node->output_version = target.buffer->version;
    detail::release(target.node);
    target.node = node;
    target.history = ++target.buffer->history;
  }
}

namespace {

// Never called: the data is shared, and so is the gradient.
void copy_nothing(const ForwardArgs&) {}
void copy_gradient(const BackwardArgs&) {}

}  // namespace

Tensor share_as(const Tensor& input, const Shape& shape) {
  static constexpr Op op{.name = "reshape",
                         .derivative = "dx = dy in the shape of x",
                         .forward = {copy_nothing, copy_nothing, copy_nothing},
                         .backward = {copy_gradient, copy_gradient, nullptr},
                         .passes_gradient = 1};
  const Input inputs[] = {input};
  CallList<Operand> operands(1);
  const bool recorded = prepare(op, inputs, {}, input.dtype(), operands);
  TensorImpl& source = *input.impl();
  Tensor output = detail::adopt(detail::retain(source.buffer), shape, source.dtype);
  output.impl()->is_view = source.is_view || source.node;
  if (recorded) output.impl()->node = record({op, inputs, {}, operands.all(), nullptr, 0}, *output.impl());
  return output;
}

}  // namespace taper::autograd
