#include <algorithm>
#include <cstring>

#include "core/capture.hpp"

/// Where the arrays of a recorded step come from: its inputs, from outside, made without an operation, or computed.
namespace taper::detail {

void tell_made(Buffer* buffer) { recorder->made(buffer); }
void tell_freed(Buffer* buffer) noexcept { recorder->freed(buffer); }

namespace {

Buffer* buffer_of(const void* data) { return static_cast<Buffer*>(const_cast<void*>(data)) - 1; }

}  // namespace

Recorder::Recorder(std::span<const autograd::Input> inputs, bool strict)
    : before_(recorder), strict_(strict), plan_(Shared<FrozenPlan>::make()) {
  FrozenPlan& plan = *plan_;
  plan.modules = module_state();
  plan.grad_enabled = autograd::is_grad_enabled();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    void* data = impl.buffer->data();
    const auto known = arrays_.find(data);
    const std::uint32_t array = known == arrays_.end() ? add_array(data, Home::input) : known->second;
    plan.input_arrays.push_back(array);
    plan.input_pointers.push_back(data);
    const auto twin = std::find(plan.input_arrays.begin(), plan.input_arrays.end(), array);
    plan.inputs.push_back({impl.shape, impl.dtype, std::size_t(twin - plan.input_arrays.begin())});
    if (known == arrays_.end()) plan.arrays[array].number = std::uint32_t(i);
  }
  recorder = this;
}

Recorder::~Recorder() { recorder = before_; }

void Recorder::refuse_with(const std::string& sentence) {
  if (!refusal_.empty()) return;
  refusal_ = sentence;
  if (strict_) fail(ErrorKind::tape, sentence);
}

std::uint32_t Recorder::add_array(const void* data, Home home) {
  const auto id = std::uint32_t(plan_->arrays.size());
  PlanArray& array = plan_->arrays.emplace_back();
  array.home = home;
  array.buffer = buffer_of(data);
  array.bytes = array.buffer->bytes;
  array.number = id;
  if (home == Home::constant || home == Home::external) retain(array.buffer);
  facts_.emplace_back();
  arrays_[data] = id;
  return id;
}

void Recorder::made(Buffer* buffer) {
  if (paused_)
    arrays_.erase(buffer->data());
  else
    arrays_[buffer->data()] = kUntouched;
}

void Recorder::freed(Buffer* buffer) {
  const auto it = arrays_.find(buffer->data());
  if (it == arrays_.end()) return;
  if (it->second != kUntouched) facts_[it->second].is_alive = false;
  arrays_.erase(it);
}

/// The array of a value that a command reads. What no command has written was there before, or is a constant.
std::uint32_t Recorder::array_to_read(const void* data) {
  const auto it = arrays_.find(data);
  if (it == arrays_.end()) return add_array(data, Home::external);
  if (it->second == kUntouched) return add_array(data, Home::constant);
  return it->second;
}

/// The array of a value that a command writes; `reads_too`: it changes what is there.
std::uint32_t Recorder::array_to_write(const void* data, bool reads_too, const char* writer) {
  const auto it = arrays_.find(data);
  std::uint32_t id;
  if (it == arrays_.end()) {
    id = add_array(data, Home::external);
  } else if (it->second == kUntouched && !reads_too) {
    id = add_array(data, Home::block);
  } else {
    id = array_to_read(data);
    if (plan_->arrays[id].home == Home::constant) keep_apart(id);
  }
  Facts& facts = facts_[id];
  if (facts.was_read)
    refuse("a tensor that the step changes was read from outside the operations: expected no item(), to_vector() or ",
           "data() of it inside the step, got ", writer, " changing it; do one of the two after the step");
  if (facts.maker.empty()) facts.maker = writer;
  facts.is_written = true;
  return id;
}

/// A constant is about to be changed in place: commands so far, and the next replay, read a copy of it.
void Recorder::keep_apart(std::uint32_t id) {
  Buffer* buffer = plan_->arrays[id].buffer;
  Buffer* copied = [&] {
    const Unrecorded unrecorded;
    return new_buffer(buffer->bytes);
  }();
  std::memcpy(copied->data(), buffer->data(), buffer->bytes);
  const std::uint32_t constant = add_array(copied->data(), Home::constant);
  release(copied);  // the array holds it
  std::swap(plan_->arrays[constant].places, plan_->arrays[id].places);
  for (void** place : plan_->arrays[constant].places) *place = copied->data();
  for (CommandText& text : plan_->texts)
    for (CommandText::Use& use : text.uses)
      if (use.array == id) use.array = constant;
  plan_->arrays[id].home = Home::block;
  copy(buffer, copied);
  release(buffer);
}

void Recorder::touches_elements(const TensorImpl& tensor) {
  if (is_off()) return;
  const void* data = tensor.buffer->data();
  const auto it = arrays_.find(data);
  if (it != arrays_.end() && it->second == kUntouched) return;
  const std::uint32_t id = it == arrays_.end() ? add_array(data, Home::external) : it->second;
  const PlanArray& array = plan_->arrays[id];
  Facts& facts = facts_[id];
  facts.was_read = true;
  if (array.home == Home::external && !facts.is_written) return;
  const std::string what = array.home == Home::input ? cat("input ", array.number)
                           : facts.maker.empty()     ? std::string("a tensor the step has used already")
                                                     : "the result of " + facts.maker;
  refuse("elements were read or written inside the step: expected no item(), to_vector() or data() of what a replay ",
         "computes anew, got one of ", what, ' ', tensor.shape, "; return the tensor and read it after the step");
}

}  // namespace taper::detail
