#include "core/fusion.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace taper::detail {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::Op;
using autograd::Operand;

namespace {

class Fuser {
 public:
  explicit Fuser(FrozenPlan& plan) : plan_(plan), users_(plan.arrays.size()), removed_(plan.commands.size()) {
    for (std::size_t i = 0; i < plan.texts.size(); ++i)
      for (const CommandText::Use& use : plan.texts[i].uses) users_[use.array].push_back(i);
  }

  void run() {
    for (std::size_t i = 0; i < plan_.commands.size(); ++i)
      for (const Fusion& fusion : fusions())
        if (try_at(i, fusion)) break;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      if (removed_[i]) continue;
      plan_.commands[kept] = plan_.commands[i];
      plan_.texts[kept++] = plan_.texts[i];
    }
    plan_.commands.resize(kept);
    plan_.texts.resize(kept);
  }

 private:
  using Commands = std::vector<std::size_t>;

  bool is_forward(std::size_t i, const Op& op) const {
    return i < plan_.commands.size() && plan_.commands[i].kind == Command::Kind::forward &&
           plan_.commands[i].forward == op.forward[0];
  }
  bool is_backward(std::size_t i, const Op& op) const {
    return i < plan_.commands.size() && plan_.commands[i].kind == Command::Kind::backward &&
           plan_.commands[i].backward == op.backward[0];
  }
  ForwardArgs& forward_args(std::size_t i) const { return *static_cast<ForwardArgs*>(plan_.commands[i].arguments); }
  BackwardArgs& backward_args(std::size_t i) const { return *static_cast<BackwardArgs*>(plan_.commands[i].arguments); }

  std::uint32_t read(std::size_t i) const { return plan_.texts[i].uses.front().array; }
  /// Where command `i` writes first.
  std::vector<CommandText::Use>::const_iterator output_of(std::size_t i) const {
    const auto& uses = plan_.texts[i].uses;
    return std::find_if(uses.begin(), uses.end(), [](const auto& use) { return use.is_written; });
  }
  std::uint32_t written(std::size_t i) const { return output_of(i)->array; }
  /// What it writes behind that.
  std::vector<std::uint32_t> written_beside(std::size_t i) const {
    std::vector<std::uint32_t> arrays;
    for (auto use = output_of(i) + 1; use != plan_.texts[i].uses.end(); ++use) arrays.push_back(use->array);
    return arrays;
  }
  /// Whether an array lives only between the commands.
  bool is_used_by(std::uint32_t array, const Commands& commands) const {
    return plan_.arrays[array].home == Home::block && users_[array] == commands;
  }

  /// Whether command `i` hands an array to the next one, and nobody else uses it.
  bool hands_on(std::size_t i) const { return written(i) == read(i + 1) && is_used_by(written(i), {i, i + 1}); }

  bool try_at(std::size_t i, const Fusion& fusion) {
    const std::size_t end = i + fusion.chain.size();
    for (std::size_t k = i; k < end; ++k)
      if (!is_forward(k, *fusion.chain[k - i])) return false;
    for (std::size_t k = i; k + 2 < end; ++k)
      if (!hands_on(k)) return false;
    const std::uint32_t between = written(end - 2);
    if (read(end - 1) != between) return false;
    // The backwards run in the opposite order; that of the last but one is the one command that still reads its output.
    std::size_t first_backward = 0;
    if (!hands_on(end - 2)) {
      const std::size_t j = users_[between].back();
      if (!is_used_by(between, {end - 2, end - 1, j}) || j == 0 || !is_chain_backward(j - 1, fusion)) return false;
      first_backward = j - 1;
    }
    const std::vector<std::uint32_t> beside = written_beside(end - 1);
    for (const std::uint32_t array : beside)
      if (!is_used_by(array, {end - 1}) && !is_used_by(array, {end - 1, first_backward})) return false;
    void* attributes = plan_.pool.allocate(fusion.attribute_bytes);
    const std::size_t bytes = fusion.fits(forward_args(i), forward_args(end - 1), attributes);
    if (bytes == 0) return false;
    const std::uint32_t kept = add_array(bytes);
    for (std::size_t k = i; k + 1 < end; ++k) plan_.arrays[written(k)].places.clear();
    for (const std::uint32_t array : beside) plan_.arrays[array].places.clear();
    fuse_forward(i, end - 1, fusion, attributes, kept);
    if (first_backward > 0)
      fuse_backward(first_backward, first_backward + fusion.chain.size() - 1, fusion, attributes, kept);
    return true;
  }

  /// Whether the commands from `first` on are the backwards of a chain, and only the gradients are asked for that a
  /// fusion gives.
  bool is_chain_backward(std::size_t first, const Fusion& fusion) const {
    const std::size_t last = first + fusion.chain.size() - 1;
    for (std::size_t k = first; k <= last; ++k)
      if (!is_backward(k, *fusion.chain[last - k])) return false;
    for (std::size_t k = first; k < last; ++k)
      if (!hands_on(k) || backward_args(k).input_gradients[0].add) return false;
    const auto gradients = backward_args(last).input_gradients;
    return gradients.size() == 1 ? !gradients[0].add : !gradients[0] && gradients[1];
  }

  std::uint32_t add_array(std::size_t bytes) {
    const auto id = std::uint32_t(plan_.arrays.size());
    PlanArray& array = plan_.arrays.emplace_back();
    array.number = id;
    array.bytes = bytes;
    users_.emplace_back();
    return id;
  }

  /// The one further array of command `i`.
  std::span<const Operand> kept_operand(std::size_t i, std::uint32_t id, bool is_written) {
    PlanArray& array = plan_.arrays[id];
    const auto bytes = std::int64_t(array.bytes);
    const Operand operand{nullptr, plan_.pool.copy(&bytes, 1), bytes, 1, DType::int64};
    Operand* copied = plan_.pool.copy(&operand, 1);
    if (array.places.empty()) array.first = std::int64_t(i);
    array.last = std::int64_t(i);
    array.places.push_back(&copied->data);
    plan_.texts[i].uses.push_back({id, is_written, Shape{bytes}});
    return {copied, 1};
  }

  /// Command `to` reads what command `from` reads: until then, or from then on.
  void move_reads(std::size_t from, std::size_t to) {
    for (const CommandText::Use& use : plan_.texts[from].uses) {
      PlanArray& array = plan_.arrays[use.array];
      array.first = std::min(array.first, std::int64_t(to));
      array.last = std::max(array.last, std::int64_t(to));
    }
  }

  /// The pass takes the place of the last of the commands.
  void fuse_forward(std::size_t first, std::size_t last, const Fusion& fusion, const void* attributes,
                    std::uint32_t kept) {
    ForwardArgs& args = forward_args(first);
    args.attributes = attributes;
    args.output = forward_args(last).output;
    const CommandText::Use output = *output_of(last);
    plan_.arrays[output.array].places.push_back(&args.output.data);
    move_reads(first, last);
    plan_.commands[last] = {.kind = Command::Kind::forward, .forward = fusion.forward, .arguments = &args};
    plan_.texts[last] = plan_.texts[first];
    plan_.texts[last].name = fusion.name;
    plan_.texts[last].uses.back() = output;
    args.aux = kept_operand(last, kept, true);
    for (std::size_t k = first; k < last; ++k) removed_[k] = true;
  }

  void fuse_backward(std::size_t first, std::size_t last, const Fusion& fusion, const void* attributes,
                     std::uint32_t kept) {
    BackwardArgs& args = backward_args(last);
    auto& uses = plan_.texts[last].uses;
    args.attributes = attributes;
    args.output_gradient = backward_args(first).output_gradient;
    const CommandText::Use gradient = plan_.texts[first].uses.front();
    plan_.arrays[gradient.array].places.push_back(&args.output_gradient.data);
    move_reads(first, last);
    plan_.commands[last].backward = fusion.backward;
    plan_.texts[last].name = cat(fusion.name, " backward");
    for (std::size_t k = first; k < last; ++k) {
      plan_.arrays[written(k)].places.clear();
      removed_[k] = true;
    }
    uses.front() = gradient;
    std::erase_if(uses, [&](const CommandText::Use& use) { return plan_.arrays[use.array].places.empty(); });
    args.aux = kept_operand(last, kept, false);
  }

  FrozenPlan& plan_;
  std::vector<Commands> users_;  ///< of each array, in order
  std::vector<bool> removed_;
};

}  // namespace

void fuse(FrozenPlan& plan) { Fuser(plan).run(); }

}  // namespace taper::detail
