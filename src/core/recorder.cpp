#include <algorithm>
#include <cstring>

#include "core/capture.hpp"
#include "core/random_state.hpp"
#include "kernels/accumulate.hpp"
#include "taper/creation.hpp"

namespace taper::detail {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Input;
using autograd::Op;
using autograd::Operand;

void Recorder::begin_command(const std::string& name, Command command) {
  plan_->commands.push_back(command);
  plan_->texts.push_back({name, {}});
}

/// Notes where the last command points to an array, and gives it extents that stay.
void Recorder::use(Operand& operand, bool is_written) {
  operand.extents = plan_->pool.copy(operand.extents, std::size_t(operand.rank));
  if (!operand.data) return;
  const std::uint32_t id = arrays_.at(operand.data);
  PlanArray& array = plan_->arrays[id];
  const auto now = std::int64_t(plan_->commands.size()) - 1;
  if (array.places.empty()) array.first = now;
  array.last = now;
  array.places.push_back(&operand.data);
  plan_->texts.back().uses.push_back({id, is_written, Shape(operand.shape())});
}

namespace {

struct Draw {
  Stream stream;
  std::uint64_t n;
  kernels::RandomStart* start;
};

void draw(void* context) {
  const auto& d = *static_cast<const Draw*>(context);
  const Generator taken = take_positions(d.stream, d.n);
  *d.start = {taken.seed, taken.stream, taken.position};
}

bool contains(std::span<const Input> inputs, const void* data) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Input& input) { return input.tensor->impl()->buffer->data() == data; });
}

}  // namespace

void Recorder::drew(const Generator& taken, std::uint64_t n) {
  if (is_off()) return;
  if (has_draw_) refuse_draw();
  has_draw_ = true;
  drawn_ = {taken.seed, taken.stream, taken.position};
  draw_count_ = n;
}

void Recorder::refuse_draw() {
  refuse("random numbers were drawn outside an operation: expected rand(), dropout() and their like, got positions ",
         "of which no operation knows");
}

/// Takes the random numbers of a command anew in each replay, before it.
void Recorder::draw_into(void* attributes, std::size_t attribute_bytes) {
  if (!has_draw_) return;
  has_draw_ = false;
  auto* start = static_cast<kernels::RandomStart*>(attributes);
  if (attribute_bytes < sizeof *start || start->seed != drawn_.seed || start->stream != drawn_.stream ||
      start->first != drawn_.first)
    return refuse_draw();
  const Draw context{drawn_.stream, draw_count_, start};
  begin_command("draw", {.kind = Command::Kind::other, .other = draw, .arguments = plan_->pool.copy(&context, 1)});
}

void Recorder::expect_unchanged(std::span<const Input> inputs) {
  for (const Input& input : inputs) {
    TensorImpl* impl = input.tensor->impl();
    const bool is_leaf = !impl->node || impl->node->is_leaf();
    const auto it = arrays_.find(impl->buffer->data());
    const bool is_external =
        it == arrays_.end() || (it->second != kUntouched && plan_->arrays[it->second].home == Home::external);
    if (!is_leaf || !is_external || is_own(impl->node)) continue;
    if (std::find(guarded_.begin(), guarded_.end(), impl) != guarded_.end()) continue;
    guarded_.push_back(impl);
    plan_->externals.emplace_back(*input.tensor, impl->node);
  }
}

void Recorder::forward(const char* name, Op::Forward function, std::span<const Input> inputs, const ForwardArgs& args,
                       std::size_t attribute_bytes) {
  if (is_off()) return;
  expect_unchanged(inputs);
  Pool& pool = plan_->pool;
  auto* copied = new (pool.allocate(sizeof(ForwardArgs))) ForwardArgs(args);
  void* attributes = pool.copy(static_cast<const std::byte*>(args.attributes), attribute_bytes);
  copied->attributes = attributes;
  draw_into(attributes, attribute_bytes);

  const bool is_effect = !args.output.data;
  for (const Operand& extra : args.aux) {
    const std::uint32_t id = array_to_write(extra.data, contains(inputs, extra.data), name);
    plan_->arrays[id].changes += is_effect;
  }
  if (!is_effect) {
    const bool in_place = args.output.data == args.inputs[0].data;
    const std::uint32_t id = array_to_write(args.output.data, in_place, name);
    plan_->arrays[id].changes += in_place;
  }
  for (const Operand& input : args.inputs) array_to_read(input.data);
  if (is_off()) return;

  Operand* operands = pool.copy(args.inputs.data(), args.inputs.size());
  Operand* aux = pool.copy(args.aux.data(), args.aux.size());
  copied->inputs = {operands, args.inputs.size()};
  copied->aux = {aux, args.aux.size()};
  begin_command(name, {.kind = Command::Kind::forward, .forward = function, .arguments = copied});
  for (std::size_t i = 0; i < args.inputs.size(); ++i) use(operands[i], false);
  if (!is_effect) use(copied->output, true);
  for (std::size_t i = 0; i < args.aux.size(); ++i) use(aux[i], true);
}

void Recorder::backward(const Op& op, const BackwardArgs& args, std::size_t attribute_bytes) {
  if (is_off()) return;
  const std::string name = cat(op.name, " backward");
  for (const GradientSlot& slot : args.input_gradients)
    if (slot) array_to_write(slot.gradient.data, slot.add, name.c_str());
  array_to_read(args.output_gradient.data);
  for (const auto list : {args.inputs, args.aux})
    for (const Operand& operand : list)
      if (operand.data) array_to_read(operand.data);
  if (args.output.data) array_to_read(args.output.data);
  if (is_off()) return;

  Pool& pool = plan_->pool;
  auto* copied = new (pool.allocate(sizeof(BackwardArgs))) BackwardArgs(args);
  Operand* inputs = pool.copy(args.inputs.data(), args.inputs.size());
  Operand* aux = pool.copy(args.aux.data(), args.aux.size());
  GradientSlot* slots = pool.copy(args.input_gradients.data(), args.input_gradients.size());
  copied->inputs = {inputs, args.inputs.size()};
  copied->aux = {aux, args.aux.size()};
  copied->input_gradients = {slots, args.input_gradients.size()};
  copied->attributes = pool.copy(static_cast<const std::byte*>(args.attributes), attribute_bytes);
  const auto function = op.backward[int(args.inputs[0].dtype)];
  begin_command(name, {.kind = Command::Kind::backward, .backward = function, .arguments = copied});
  use(copied->output_gradient, false);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) use(inputs[i], false);
  use(copied->output, false);
  for (std::size_t i = 0; i < args.aux.size(); ++i) use(aux[i], false);
  for (std::size_t i = 0; i < args.input_gradients.size(); ++i) use(slots[i].gradient, true);
}

namespace {

void copy_bytes(const ForwardArgs& args) {
  std::memcpy(args.output.data, args.inputs[0].data, std::size_t(args.output.numel));
}

template <class T>
void accumulate_elements(const ForwardArgs& args) {
  kernels::accumulate(args.output.as<T>(), args.inputs[0].as<T>(), args.output.numel);
}

}  // namespace

void Recorder::copy(Buffer* to, Buffer* from) {
  const auto bytes = std::int64_t(from->bytes);
  const Operand source{from->data(), &bytes, bytes, 1, DType::int64};
  Operand target = source;
  target.data = to->data();
  forward("copy", copy_bytes, {}, {.inputs = {&source, 1}, .output = target, .aux = {}, .attributes = nullptr}, 0);
}

void Recorder::accumulate(Buffer* sum, const Buffer* term, std::int64_t n, DType dtype) {
  const Operand source{const_cast<Buffer*>(term)->data(), &n, n, 1, dtype};
  Operand target = source;
  target.data = sum->data();
  if (is_off()) return;
  array_to_write(target.data, true, "accumulate");
  const auto function = dtype == DType::float32 ? accumulate_elements<float> : accumulate_elements<double>;
  forward("accumulate", function, {}, {.inputs = {&source, 1}, .output = target, .aux = {}, .attributes = nullptr}, 0);
}

void Recorder::call(const std::string& name, void (*function)(void*), void* context) {
  if (is_off()) return;
  begin_command(name, {.kind = Command::Kind::other, .other = function, .arguments = context});
}

}  // namespace taper::detail
