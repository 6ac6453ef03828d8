#include <algorithm>

#include "base/fail.hpp"
#include "core/call_list.hpp"
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

[[gnu::cold, gnu::noinline]] void check_mixed(const Op& op, DType first, DType other) {
  if (!is_floating(first) || !is_floating(other)) return;
  fail(ErrorKind::type, op.name, ": element types differ: expected ", first, ", got ", other, "; convert with to()");
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_history(const Op& op, const TensorImpl& impl) {
  fail(ErrorKind::tape, op.name, ": an input was changed in place through another view of its data: expected history ",
       impl.history, ", got ", impl.buffer->history, "; make the view after the change");
}

// What follows is inline in each caller. There a call is a few registers, of which only a copy is handed on.

/// Fills in what the forward sees of the tensors. Whether the call is to be recorded, because it has a gradient and an
/// input requires one. Errors: `ErrorKind::type`; `ErrorKind::tape` when a call that is to be recorded reads a value
/// whose history was rewritten through another view of its data.
[[gnu::always_inline]] inline bool gather(const Call& call, DType output_dtype, Operand* operands) {
  const Op& op = call.op;
  const DType first = call.inputs[0].tensor->dtype();
  if (!op.forward[int(first)]) [[unlikely]]
    fail_dtype(op, first);
  bool requires_grad = false;
  for_each_index(
      call.inputs.size(), [&](std::size_t i) __attribute__((always_inline)) {
        const DType dtype = call.inputs[i].tensor->dtype();
        if (dtype != first) [[unlikely]]
          check_mixed(op, first, dtype);
        const TensorImpl& impl = *call.inputs[i].tensor->impl();
        new (operands + i) Operand(operand_of(impl));
        requires_grad |= impl.node != nullptr;
      });
  operands += call.inputs.size();
  for (const Input& extra : call.aux) new (operands++) Operand(operand_of(*extra.tensor->impl()));
  if (!requires_grad || !grad_enabled || !is_floating(output_dtype) || !op.backward[int(first)]) return false;
  for_each_index(
      call.inputs.size(), [&](std::size_t i) __attribute__((always_inline)) {
        const TensorImpl& impl = *call.inputs[i].tensor->impl();
        if (impl.node && impl.history != impl.buffer->history) [[unlikely]]
          fail_history(op, impl);
      });
  return true;
}

[[gnu::cold, gnu::noinline]] void tell(const Call& call, const autograd::ForwardArgs& args) {
  recorder->forward(call.op.name, call.op.forward[int(args.inputs[0].dtype)], call.inputs, args, call.attribute_bytes);
}

/// Fills the output and aux.
[[gnu::always_inline]] inline void run_forward(const Call& call, std::span<const Operand> operands,
                                               const TensorImpl& output) {
  const autograd::ForwardArgs args{.inputs = operands.first(call.inputs.size()),
                                   .output = operand_of(output),
                                   .aux = operands.subspan(call.inputs.size()),
                                   .attributes = call.attributes};
  if (recorder) [[unlikely]]
    tell(Call(call), args);
  call.op.forward[int(operands[0].dtype)](args);
}

[[gnu::always_inline]] inline Tensor run(const Call& call, const Shape& output_shape, DType output_dtype) {
  Few<Operand> few;
  CallList<Operand> operands(call.inputs.size() + call.aux.size(), few);
  const bool recorded = gather(call, output_dtype, operands.data());
  Tensor output = new_tensor(output_shape, output_dtype);
  run_forward(call, operands.all(), *output.impl());
  if (recorded) output.impl()->node = record(Call(call), *output.impl());
  return output;
}

}  // namespace

Tensor apply_to_two(const Op& op, const Tensor& a, const Tensor& b, const Shape& output_shape, DType output_dtype) {
  const Input inputs[] = {a, b};
  return run({op, inputs, {}, nullptr, 0}, output_shape, output_dtype);
}

}  // namespace taper::detail

namespace taper::autograd {

using detail::Call;
using detail::CallList;
using detail::grad_enabled;
using detail::Node;
using detail::TensorImpl;

bool is_grad_enabled() noexcept { return grad_enabled; }

GradModeGuard::GradModeGuard(bool enabled) noexcept : before_(grad_enabled) { grad_enabled = enabled; }
GradModeGuard::~GradModeGuard() { grad_enabled = before_; }

Tensor apply(const Op& op, std::span<const Input> inputs, const Shape& output_shape, DType output_dtype,
             const void* attributes, std::size_t attribute_bytes, std::span<const Input> aux) {
  return detail::run({op, inputs, aux, attributes, attribute_bytes}, output_shape, output_dtype);
}

Tensor apply(const Op& op, const Input* inputs, std::size_t input_count, const Shape& output_shape, DType output_dtype,
             const void* attributes, std::size_t attribute_bytes, const Input* aux, std::size_t aux_count) {
  return detail::run({op, {inputs, input_count}, {aux, aux_count}, attributes, attribute_bytes}, output_shape,
                     output_dtype);
}

void apply_in_place(const Op& op, std::span<const Input> inputs, const void* attributes, std::size_t attribute_bytes) {
  const Tensor& changed = *inputs[0].tensor;
  const Call call{op, inputs, {}, attributes, attribute_bytes};
  detail::Few<Operand> few;
  CallList<Operand> operands(inputs.size(), few);
  const bool recorded = detail::gather(call, changed.dtype(), operands.data());
  TensorImpl& target = *changed.impl();
  if (grad_enabled && target.node && target.node->is_leaf()) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a leaf that requires grad was changed in place: expected grad mode off, got on; use "
         "NoGradGuard");
  if (grad_enabled && target.is_view) [[unlikely]]
    fail(ErrorKind::tape, op.name,
         "_: a view of a tensor that requires grad was changed in place: expected a tensor with "
         "data of its own, got a view; clone() it first or use NoGradGuard");
  Node* node = recorded ? record(call, target) : nullptr;
  detail::run_forward(call, operands.all(), target);
  ++target.buffer->version;
  if (node) {
    if (node->saves_output) node->operands_and_output().back().version = target.buffer->version;
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
  const Call call{op, inputs, {}, nullptr, 0};
  detail::Few<Operand> few;
  CallList<Operand> operands(1, few);
  const bool recorded = detail::gather(call, input.dtype(), operands.data());
  TensorImpl& source = *input.impl();
  Tensor output = detail::adopt(detail::retain(source.buffer), shape, source.dtype);
  output.impl()->is_view = source.is_view || source.node;
  if (recorded) output.impl()->node = record(call, *output.impl());
  return output;
}

}  // namespace taper::autograd
