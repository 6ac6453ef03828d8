#include "core/frozen_plan.hpp"

#include <algorithm>

#include "core/capture.hpp"
#include "core/fusion.hpp"
#include "core/plan_memory.hpp"

namespace taper::detail {

void* Pool::allocate(std::size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  if (bytes > left_) {
    left_ = std::max(bytes, kChunk);
    chunks_.push_back(std::make_unique<std::byte[]>(left_));
    next_ = chunks_.back().get();
  }
  left_ -= bytes;
  return std::exchange(next_, next_ + bytes);
}

[[gnu::cold]] FrozenPlan::~FrozenPlan() {
  release(block);
  for (PlanArray& array : arrays)
    if (array.home == Home::constant || array.home == Home::external) release(array.buffer);
  for (PlanLeaf& leaf : leaves) release(leaf.node);
}

std::size_t FrozenPlan::constant_bytes() const {
  std::size_t sum = 0;
  for (const PlanArray& array : arrays)
    if (array.home == Home::constant) sum += array.bytes;
  return sum;
}

/// An array that a command writes in the place of one that nobody needs any more lives there.
[[gnu::cold]] std::vector<PlanArray*> FrozenPlan::find_places() {
  std::vector<PlanArray*> place(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) place[i] = &arrays[i];
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (!works_in_place(commands[i])) continue;
    const auto& uses = texts[i].uses;
    PlanArray &from = *place[uses.front().array], &to = arrays[uses.back().array];
    const auto now = std::int64_t(i);
    if (from.home != Home::block || to.home != Home::block || from.bytes != to.bytes || from.last != now ||
        to.first != now)
      continue;
    from.last = to.last;
    place[uses.back().array] = &from;
  }
  return place;
}

[[gnu::cold]] void FrozenPlan::place_arrays() {
  const std::vector<PlanArray*> place = find_places();
  std::vector<Lifetime> lives;
  std::vector<PlanArray*> placed;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].home != Home::block || arrays[i].places.empty() || place[i] != &arrays[i]) continue;
    lives.push_back({arrays[i].bytes, arrays[i].first, arrays[i].last});
    placed.push_back(&arrays[i]);
  }
  block_bytes = detail::place(lives);
  needed_bytes = largest_need(lives);
  for (std::size_t i = 0; i < placed.size(); ++i) placed[i]->offset = lives[i].offset;
  for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].offset = place[i]->offset;
}

void FrozenPlan::make_block() {
  block = new_buffer(block_bytes);
  for (PlanArray& array : arrays)
    if (array.home == Home::block) point(array, static_cast<std::byte*>(block->data()) + array.offset);
}

void FrozenPlan::point(PlanArray& array, void* to) {
  array.buffer = static_cast<Buffer*>(to) - 1;  // means nothing inside the block
  for (void** place : array.places) *place = to;
}

// --- whether a replay may be made -----------------------------------------------------------------------------------

namespace {

void* data_of(const autograd::Input& input) { return input.tensor->impl()->buffer->data(); }

std::size_t twin_of(std::span<const autograd::Input> inputs, std::size_t i) {
  std::size_t twin = 0;
  while (data_of(inputs[twin]) != data_of(inputs[i])) ++twin;
  return twin;
}

bool fits(const PlanLeaf& leaf) {
  const NodeExtra* extra = leaf.node->extra;
  if (extra && !extra->hooks.empty()) return false;
  const bool is_defined = extra && extra->gradient.defined();
  return leaf.expects == PlanLeaf::Expects::nothing || is_defined == (leaf.expects == PlanLeaf::Expects::defined);
}

}  // namespace

bool FrozenPlan::fits(std::span<const autograd::Input> given) const {
  if (given.size() != inputs.size() || modules != module_state() || grad_enabled != autograd::is_grad_enabled())
    return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *given[i].tensor->impl();
    if (impl.dtype != inputs[i].dtype || !(impl.shape == inputs[i].shape) || impl.node) return false;
    if (given.size() > 1 && twin_of(given, i) != inputs[i].twin) return false;
  }
  for (const auto& [tensor, node] : externals)
    if (tensor.impl()->node != node) return false;
  return std::all_of(leaves.begin(), leaves.end(), [](const PlanLeaf& leaf) { return detail::fits(leaf); });
}

// --- replay ---------------------------------------------------------------------------------------------------------

namespace {

/// Whether nobody but the plan, and `others` more handles, would see it change.
bool is_free(const Tensor& tensor, std::uint32_t others) {
  return tensor.impl()->refs.count() == 1 + others && tensor.impl()->buffer->refs.is_one();
}

Tensor like(const Tensor& tensor) {
  return adopt(new_buffer(tensor.impl()->buffer->bytes), tensor.shape(), tensor.dtype());
}

}  // namespace

/// Gives the results and gradients new memory where the ones of the call before are still held.
void FrozenPlan::renew_results() {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    PlanOutput& output = outputs[i];
    if (output.array == PlanOutput::kNone || is_free(results[i], 0)) continue;
    results[i] = like(results[i]);
    point(arrays[output.array], results[i].impl()->buffer->data());
  }
  for (PlanGradient& gradient : gradients) {
    const NodeExtra* extra = gradient.leaf->node->extra;
    const bool is_installed = extra && extra->gradient.impl() == gradient.tensor.impl();
    const bool is_read = is_installed && gradient.leaf->expects == PlanLeaf::Expects::defined;
    if (!is_read && is_free(gradient.tensor, is_installed ? 1 : 0)) continue;
    gradient.tensor = like(gradient.tensor);
    point(arrays[gradient.array], gradient.tensor.impl()->buffer->data());
  }
}

void FrozenPlan::count_changes() {
  for (const std::uint32_t i : changed) arrays[i].buffer->version += arrays[i].changes;
}

const std::vector<Tensor>& FrozenPlan::replay(std::span<const autograd::Input> given) {
  for (std::size_t i = 0; i < given.size(); ++i)
    if (void* data = data_of(given[i]); data != input_pointers[i]) {
      input_pointers[i] = data;
      if (inputs[i].twin == i) point(arrays[input_arrays[i]], data);
    }
  for (PlanLeaf& leaf : leaves) {
    if (leaf.expects != PlanLeaf::Expects::defined) continue;
    void* data = leaf.node->extra->gradient.impl()->buffer->data();
    if (data != std::exchange(leaf.current, data)) point(arrays[leaf.array], data);
  }
  renew_results();
  if (!block) [[unlikely]]
    make_block();
  for (const Command& command : commands) switch (command.kind) {
      case Command::Kind::forward:
        command.forward(*static_cast<const autograd::ForwardArgs*>(command.arguments));
        break;
      case Command::Kind::backward:
        command.backward(*static_cast<const autograd::BackwardArgs*>(command.arguments));
        break;
      case Command::Kind::other:
        command.other(command.arguments);
    }
  count_changes();
  return_inputs(given);
  return results;
}

void FrozenPlan::return_inputs(std::span<const autograd::Input> given) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].input != PlanOutput::kNone)
      results[i] = adopt(retain(given[outputs[i].input].tensor->impl()->buffer), outputs[i].shape, results[i].dtype());
}

void install_gradient(void* gradient) {
  const auto& made = *static_cast<PlanGradient*>(gradient);
  Tensor& held = made.leaf->node->ensure_extra().gradient;
  if (held.impl() != made.tensor.impl()) held = made.tensor;
}

void drop_gradient(void* leaf) {
  if (NodeExtra* extra = static_cast<PlanLeaf*>(leaf)->node->extra) extra->gradient = Tensor();
}

}  // namespace taper::detail
