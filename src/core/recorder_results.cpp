#include <algorithm>
#include <cstring>

#include "core/capture.hpp"
#include "core/fusion.hpp"
#include "taper/creation.hpp"

/// What leaves a recorded step: gradients of leaves, returned tensors; and what must not leave it.
namespace taper::detail {

// --- gradients ------------------------------------------------------------------------------------------------------

bool Recorder::is_own(const Node* node) const {
  return std::find(own_leaves_.begin(), own_leaves_.end(), node) != own_leaves_.end();
}

/// The plan's entry for a leaf; `expects`: what happens first depends on whether it has a gradient.
PlanLeaf& Recorder::leaf_of(Node& node, bool expects) {
  using Expects = PlanLeaf::Expects;
  for (PlanLeaf& leaf : plan_->leaves)
    if (leaf.node == &node) return leaf;
  PlanLeaf& leaf = plan_->leaves.emplace_back(PlanLeaf{.node = retain(&node)});
  if (!expects) return leaf;
  const bool is_defined = node.extra && node.extra->gradient.defined();
  leaf.expects = is_defined ? Expects::defined : Expects::undefined;
  if (!is_defined) return leaf;
  leaf.current = node.extra->gradient.impl()->buffer->data();
  if (arrays_.contains(leaf.current))
    refuse("a gradient shares memory with an input: expected memory of its own, got one array; clone() it");
  else
    leaf.array = add_array(leaf.current, Home::gradient);
  return leaf;
}

void Recorder::reads_gradient(Node& node) {
  if (!is_off() && node.is_leaf() && !is_own(&node)) leaf_of(node, true);
}

void Recorder::drops_gradient(Node& node) {
  if (is_off() || is_own(&node)) return;
  PlanLeaf& leaf = leaf_of(node, false);
  call("drop gradient", drop_gradient, &leaf);
}

void Recorder::set_gradient(Node& node) {
  if (is_off() || !node.is_leaf() || is_own(&node)) return;
  const Tensor& gradient = node.extra->gradient;
  const void* data = gradient.impl()->buffer->data();
  const std::uint32_t id = array_to_write(data, true, "backward");
  PlanArray& array = plan_->arrays[id];
  if (array.home != Home::block)
    return refuse("a gradient was set to a tensor that the step did not compute: expected backward() or a result, got ",
                  name_of(gradient.dtype()), ' ', gradient.shape());
  array.home = Home::gradient;
  PlanLeaf& leaf = leaf_of(node, false);
  PlanGradient& made = plan_->gradients.emplace_back(PlanGradient{&leaf, id, gradient});
  call("set gradient", install_gradient, &made);
}

// --- the end --------------------------------------------------------------------------------------------------------

namespace {

/// Gives `result` memory of its own, and says so to the recorder.
void separate(Tensor& result) {
  const Tensor copied = empty(result.shape(), result.dtype());
  recorder->copy(copied.impl()->buffer, result.impl()->buffer);
  std::memcpy(copied.impl()->buffer->data(), result.impl()->buffer->data(), copied.impl()->buffer->bytes);
  result = copied;
}

}  // namespace

void Recorder::add_output(Tensor& result) {
  PlanOutput output;
  if (result.defined()) {
    result = result.detach();
    const auto it = arrays_.find(result.impl()->buffer->data());
    const bool is_made = it != arrays_.end();
    const Home home = !is_made                   ? Home::external
                      : it->second == kUntouched ? Home::constant
                                                 : plan_->arrays[it->second].home;
    if (home == Home::input) {
      output.input = plan_->arrays[it->second].number;
      output.shape = result.shape();
    } else if (home != Home::external) {
      if (home != Home::block) separate(result);
      const std::uint32_t id = arrays_.at(result.impl()->buffer->data());
      plan_->arrays[id].home = Home::output;
      output.array = id;
    }
  }
  plan_->outputs.push_back(output);
}

/// Refuses a step of which something is held that a replay would compute anew without telling the holder.
void Recorder::refuse_held() {
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    const PlanArray& array = plan_->arrays[i];
    const bool held = array.home == Home::block    ? facts_[i].is_alive
                      : array.home == Home::output ? !array.buffer->refs.is_one()
                                                   : false;
    if (!held) continue;
    std::string shape;
    for (const CommandText& text : plan_->texts)
      for (const CommandText::Use& use : text.uses)
        if (use.array == i) shape = cat(' ', use.shape);
    return refuse("a result is held after the step: expected all of them returned or dropped, got the result of ",
                  facts_[i].maker, shape, "; return it from the step, because replays assign nothing");
  }
}

Shared<FrozenPlan> Recorder::finish(std::vector<Tensor>& results) {
  for (Tensor& result : results)
    if (is_off())
      result = result.defined() ? result.detach() : result;
    else
      add_output(result);
  if (has_draw_) refuse_draw();
  refuse_held();
  recorder = before_;
  if (is_off()) return nullptr;
  FrozenPlan& plan = *plan_;
  plan.results = results;
  for (std::size_t i = 0; i < plan.arrays.size(); ++i) {
    const Home home = plan.arrays[i].home;
    const bool outlives = home == Home::external || home == Home::input || home == Home::gradient;
    if (plan.arrays[i].changes && outlives) plan.changed.push_back(std::uint32_t(i));
  }
  fuse(plan);
  plan.place_arrays();
  return plan_;
}

}  // namespace taper::detail
