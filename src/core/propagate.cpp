#include <cmath>

#include "base/fail.hpp"
#include "core/call_list.hpp"
#include "core/capture.hpp"
#include "core/gradient.hpp"

/// One node of the walk: its op computes the gradients of its inputs from the gradient of its output.
namespace taper::detail {

using autograd::BackwardArgs;
using autograd::GradientSlot;
using autograd::Operand;

namespace {

constinit thread_local bool anomaly_mode = false;

void* elements(Buffer* buffer) { return buffer ? buffer->data() : nullptr; }

[[noreturn, gnu::cold, gnu::noinline]] void fail_freed(const Node& node) {
  fail(ErrorKind::tape, "backward: the saved values of ", node.op->name, " (#", node.position,
       ") are freed: expected a graph not yet differentiated, got a second backward; pass retain_graph to the first");
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_changed(const Node& node, const char* what, std::size_t index,
                                                         std::uint32_t expected, std::uint32_t got) {
  fail(ErrorKind::tape, "backward: a value that ", node.op->name, " (#", node.position,
       ") saved was changed in place: expected version ", expected, " of ", what, index, ", got ", got,
       "; clone() it before the change");
}

void check_saved(Node& node) {
  if (!node.saved_any) return;
  if (node.released) [[unlikely]]
    fail_freed(node);
  const std::span<NodeOperand> operands = node.operands_and_output();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Buffer* const saved = operands[i].saved;
    if (!saved || saved->version == operands[i].version) [[likely]]
      continue;
    const bool is_output = &operands[i] == node.output();
    fail_changed(node, is_output ? "output " : "input ", is_output ? 0 : i, operands[i].version, saved->version);
  }
}

bool any_nan(const Operand& x) {
  for (std::int64_t i = 0; i < x.numel; ++i)
    if (x.dtype == DType::float32 ? std::isnan(x.as<float>()[i]) : std::isnan(x.as<double>()[i])) return true;
  return false;
}

/// The first of the gradients that holds a NaN; -1 if none does.
[[gnu::cold, gnu::noinline]] int first_nan(std::span<const GradientSlot> slots) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (slots[i] && any_nan(slots[i].gradient)) return int(i);
  return -1;
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_nan(const Node& node, int input) {
  fail(ErrorKind::tape, "backward: a gradient became NaN: expected finite numbers, got NaN in the gradient of input ",
       input, " of ", node.op->name, " (#", node.position, ")");
}

bool wants_gradient(const NodeOperand& input) { return input.producer && input.producer->wanted; }

bool passes(const Node& node, std::size_t i, const Node& producer) {
  return passes_gradient(*node.op, i, producer.numel, node.numel);
}

/// The memory for the gradient that one input gets of `node`, and whether it is to be added. A producer that gathers
/// for the first time gets fresh memory to be written, later contributions are added; a second input from one producer
/// (a twin) gets memory of its own, so that an op never sees the same gradient twice.
struct Place {
  Buffer* memory;
  bool add, is_twin;
};

Place place_for(const Node& node, Node& producer) {
  const auto consumer = std::uint32_t(node.position);
  const bool is_twin = producer.gradient && producer.last_consumer == consumer;
  producer.last_consumer = consumer;
  if (is_twin) [[unlikely]]
    return {new_gradient(producer), false, true};
  const bool add = producer.gradient != nullptr;
  producer.gradient = add ? unshared(producer.gradient) : new_gradient(producer);
  return {producer.gradient, add, false};
}

void add_twins(std::span<const NodeOperand> inputs, std::span<const GradientSlot> slots) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (void* twin = slots[i].gradient.data; twin && twin != inputs[i].producer->gradient->data())
      contribute(*inputs[i].producer, static_cast<Buffer*>(twin) - 1);
}

/// Runs the op's backward. True when some input gets the gradient of the output as it is.
bool compute(Node& node) {
  const std::span<const NodeOperand> inputs = node.inputs(), from = node.operands();
  Few<Operand> few_operands;
  Few<GradientSlot> few_slots;
  CallList<Operand> operands(from.size(), few_operands);
  CallList<GradientSlot> slots(inputs.size(), few_slots);
  OperandShapes shapes(node);
  bool computes = false, some_pass = false, twins = false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto [extents, numel] = shapes.next(from[i]);
    operands.set(i, {elements(from[i].saved), extents, numel, from[i].rank, from[i].dtype});
    if (i < inputs.size()) {
      Place place{};
      if (wants_gradient(from[i])) {
        if (passes(node, i, *from[i].producer))
          some_pass = true;
        else
          place = place_for(node, *from[i].producer);
      }
      slots.set(i, {{elements(place.memory), extents, numel, from[i].rank, from[i].dtype}, place.add});
      computes |= place.memory != nullptr;
      twins |= place.is_twin;
    }
  }
  if (!computes) return some_pass;
  const std::span<const Operand> all = operands.all();
  const Operand dy{node.gradient->data(), node.extents(), node.numel, node.rank, node.dtype};
  Operand y = dy;
  const NodeOperand* const output = node.output();
  y.data = output ? elements(output->saved) : nullptr;
  const BackwardArgs args{.output_gradient = dy,
                          .inputs = all.first(inputs.size()),
                          .output = y,
                          .aux = all.subspan(inputs.size()),
                          .input_gradients = slots.all(),
                          .attributes = node.attributes()};
  if (recorder) [[unlikely]]
    recorder->backward(*node.op, args, 8 * std::size_t(node.attribute_words));
  node.op->backward[int(inputs[0].dtype)](args);
  const int nan = anomaly_mode ? first_nan(slots.all()) : -1;
  if (twins) [[unlikely]]
    add_twins(inputs, slots.all());
  if (nan >= 0) [[unlikely]]
    fail_nan(node, nan);
  return some_pass;
}

/// Shares the gradient with the producers that get it as it is; the last of them takes it over.
void pass_on(Node& node) {
  Buffer* const gradient = node.target ? retain(node.gradient) : std::exchange(node.gradient, nullptr);
  Node* last = nullptr;
  const std::span<const NodeOperand> inputs = node.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!wants_gradient(inputs[i]) || !passes(node, i, *inputs[i].producer)) continue;
    if (last) contribute(*last, retain(gradient));
    last = inputs[i].producer;
  }
  contribute(*last, gradient);
}

}  // namespace

bool is_anomaly_enabled() noexcept { return anomaly_mode; }

void propagate(Node& node) {
  check_saved(node);
  if (compute(node)) pass_on(node);
}

}  // namespace taper::detail

namespace taper::autograd {

AnomalyGuard::AnomalyGuard() noexcept : before_(detail::anomaly_mode) { detail::anomaly_mode = true; }
AnomalyGuard::~AnomalyGuard() { detail::anomaly_mode = before_; }

}  // namespace taper::autograd
