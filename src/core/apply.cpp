#include <algorithm>

#include "base/fail.hpp"
#include "core/capture.hpp"

namespace taper::detail {

using autograd::Input;
using autograd::Op;
using autograd::Operand;

namespace {

constinit thread_local bool grad_enabled = true;

Operand operand_of(const TensorImpl& impl) {
  return {impl.buffer->data(), impl.shape.begin(), impl.shape.numel(), impl.shape.rank(), impl.dtype};
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_dtype(const Op& op, DType dtype) {
  std::string expected;
  for (int i = 0; i < kDTypeCount; ++i)
    if (op.forward[i]) expected += (expected.empty() ? "" : " or ") + std::string(name_of(DType(i)));
  fail(ErrorKind::type, op.name, ": element type not supported: expected ", expected, ", got ", dtype,
       "; convert with to()");
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_mixed(const Op& op, DType first, DType other) {
  fail(ErrorKind::type, op.name, ": element types differ: expected ", first, ", got ", other, "; convert with to()");
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_history(const Op& op, const TensorImpl& impl) {
  fail(ErrorKind::tape, op.name, ": an input was changed in place through another view of its data: expected history ",
       impl.history, ", got ", impl.buffer->history, "; make the view after the change");
}

}  // namespace

// Inline in each caller: what a call knows stays in registers.
[[gnu::always_inline]] inline Call::Call(const Op& called, std::span<const Input> its_inputs,
                                         std::span<const Input> its_aux, const Shape& output_shape, DType output_dtype,
                                         const void* its_attributes, std::size_t its_attribute_bytes)
    : op(called),
      inputs(its_inputs),
      aux(its_aux),
      attributes(its_attributes),
      attribute_bytes(its_attribute_bytes),
      operands(inputs.size() + aux.size()) {
  const DType first = inputs[0].tensor->dtype();
  if (!op.forward[int(first)]) [[unlikely]]
    fail_dtype(op, first);
  const bool recording = grad_enabled && is_floating(output_dtype) && op.backward[int(first)];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = inputs[i].tensor->dtype();
    if (dtype != first && is_floating(dtype) && is_floating(first)) [[unlikely]]
      fail_mixed(op, first, dtype);
    const TensorImpl& impl = *inputs[i].tensor->impl();
    operands.set(i, operand_of(impl));
    n_extents += std::size_t(impl.shape.rank());
    if (!recording || !impl.node) continue;
    if (impl.history != impl.buffer->history) [[unlikely]]
      fail_history(op, impl);
    recorded = true;
    latest_position = std::max(latest_position, impl.node->position);
    if (!passes_gradient(op, i, impl.shape.numel(), output_shape.numel()))
      needs |= op.needs[std::min<std::size_t>(i, 3)];
  }
  for (std::size_t i = 0; i < aux.size(); ++i) {
    const TensorImpl& impl = *aux[i].tensor->impl();
    operands.set(inputs.size() + i, operand_of(impl));
    n_extents += std::size_t(impl.shape.rank());
  }
}

[[gnu::always_inline]] inline void Call::run_forward(const TensorImpl& output) const {
  const std::span<const Operand> all = operands.all();
  const autograd::Op::Forward forward = op.forward[int(all[0].dtype)];
  const autograd::ForwardArgs args{.inputs = all.first(inputs.size()),
                                   .output = operand_of(output),
                                   .aux = all.subspan(inputs.size()),
                                   .attributes = attributes};
  if (recorder) [[unlikely]]
    tell(args);
  forward(args);
}

[[gnu::cold, gnu::noinline]] void Call::tell(const autograd::ForwardArgs& args) const {
  recorder->forward(op.name, op.forward[int(operands.all()[0].dtype)], inputs, args, attribute_bytes);
}

}  // namespace taper::detail

namespace taper::autograd {

using detail::Call;
using detail::grad_enabled;
using detail::Node;
using detail::TensorImpl;

bool is_grad_enabled() noexcept { return grad_enabled; }

GradModeGuard::GradModeGuard(bool enabled) noexcept : before_(grad_enabled) { grad_enabled = enabled; }
GradModeGuard::~GradModeGuard() { grad_enabled = before_; }

Tensor apply(const Op& op, std::span<const Input> inputs, const Shape& output_shape, DType output_dtype,
             const void* attributes, std::size_t attribute_bytes, std::span<const Input> aux) {
  const Call call(op, inputs, aux, output_shape, output_dtype, attributes, attribute_bytes);
  Tensor output = detail::new_tensor(output_shape, output_dtype);
  call.run_forward(*output.impl());
  if (call.recorded) output.impl()->node = record(call, *output.impl());
  return output;
}

void apply_in_place(const Op& op, std::span<const Input> inputs, const void* attributes, std::size_t attribute_bytes) {
  const Tensor& changed = *inputs[0].tensor;
  const Call call(op, inputs, {}, changed.shape(), changed.dtype(), attributes, attribute_bytes);
  TensorImpl& target = *changed.impl();
  if (grad_enabled && target.node && target.node->is_leaf()) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a leaf that requires grad was changed in place: expected grad mode off, got on; use "
         "NoGradGuard");
  if (grad_enabled && target.is_view) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a view of a tensor that requires grad was changed in place: expected a tensor with "
         "data of its own, got a view; clone() it first or use NoGradGuard");
  Node* node = call.recorded ? record(call, target) : nullptr;
  call.run_forward(target);
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
  const Call call(op, inputs, {}, shape, input.dtype(), nullptr, 0);
  TensorImpl& source = *input.impl();
  Tensor output = detail::adopt(detail::retain(source.buffer), shape, source.dtype);
  output.impl()->is_view = source.is_view || source.node;
  if (call.recorded) output.impl()->node = record(call, *output.impl());
  return output;
}

}  // namespace taper::autograd
