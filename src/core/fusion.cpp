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
    for (std::size_t i = 0; i + 2 < plan_.commands.size(); ++i)
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
    return plan_.commands[i].kind == Command::Kind::forward && plan_.commands[i].forward == op.forward[0];
  }
  bool is_backward(std::size_t i, const Op& op) const {
    return i < plan_.commands.size() && plan_.commands[i].kind == Command::Kind::backward &&
           plan_.commands[i].backward == op.backward[0];
  }
  ForwardArgs& forward_args(std::size_t i) const { return *static_cast<ForwardArgs*>(plan_.commands[i].arguments); }
  BackwardArgs& backward_args(std::size_t i) const { return *static_cast<BackwardArgs*>(plan_.commands[i].arguments); }

  std::uint32_t read(std::size_t i) const { return plan_.texts[i].uses.front().array; }
  std::uint32_t written(std::size_t i) const {
    const auto& uses = plan_.texts[i].uses;
    return std::find_if(uses.begin(), uses.end(), [](const auto& use) { return use.is_written; })->array;
  }
  /// Whether an array lives only between the commands.
  bool is_used_by(std::uint32_t array, const Commands& commands) const {
    return plan_.arrays[array].home == Home::block && users_[array] == commands;
  }

  bool try_at(std::size_t i, const Fusion& fusion) {
    const Op &a = *fusion.chain[0], &b = *fusion.chain[1], &c = *fusion.chain[2];
    if (!is_forward(i, a) || !is_forward(i + 1, b) || !is_forward(i + 2, c)) return false;
    const std::uint32_t first = written(i), second = written(i + 1);
    if (first == second || read(i + 1) != first || read(i + 2) != second || !is_used_by(first, {i, i + 1}))
      return false;
    // The backwards run in the opposite order; the second's is the one command that still reads its output.
    std::size_t last = 0;
    if (!is_used_by(second, {i + 1, i + 2})) {
      const std::size_t j = users_[second].back();
      if (!is_used_by(second, {i + 1, i + 2, j}) || !is_chain_backward(j, fusion)) return false;
      last = j + 1;
    }
    void* attributes = plan_.pool.allocate(fusion.attribute_bytes);
    const std::size_t bytes = fusion.fits(forward_args(i), forward_args(i + 2), attributes);
    if (bytes == 0) return false;
    const std::uint32_t kept = add_array(bytes);
    fuse_forward(i, fusion, attributes, kept);
    if (last > 0) fuse_backward(last, fusion, attributes, kept);
    for (const std::uint32_t array : {first, second}) plan_.arrays[array].places.clear();
    return true;
  }

  /// Whether the commands around `j` are the backwards of a chain, and nobody asks for the gradient of its input.
  bool is_chain_backward(std::size_t j, const Fusion& fusion) const {
    if (j == 0 || !is_backward(j - 1, *fusion.chain[2]) || !is_backward(j, *fusion.chain[1]) ||
        !is_backward(j + 1, *fusion.chain[0]))
      return false;
    const BackwardArgs& whole = backward_args(j + 1);
    return written(j - 1) == read(j) && is_used_by(read(j), {j - 1, j}) && written(j) == read(j + 1) &&
           is_used_by(read(j + 1), {j, j + 1}) && !backward_args(j - 1).input_gradients[0].add &&
           !backward_args(j).input_gradients[0].add && !whole.input_gradients[0] && whole.input_gradients[1];
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

  /// The pass takes the place of the last of three commands.
  void fuse_forward(std::size_t i, const Fusion& fusion, const void* attributes, std::uint32_t kept) {
    const std::size_t last = i + 2;
    ForwardArgs& args = forward_args(i);
    args.attributes = attributes;
    args.output = forward_args(last).output;
    const CommandText::Use output = plan_.texts[last].uses.back();
    plan_.arrays[output.array].places.push_back(&args.output.data);
    move_reads(i, last);
    plan_.commands[last] = {.kind = Command::Kind::forward, .forward = fusion.forward, .arguments = &args};
    plan_.texts[last] = plan_.texts[i];
    plan_.texts[last].name = fusion.name;
    plan_.texts[last].uses.back() = output;
    args.aux = kept_operand(last, kept, true);
    removed_[i] = removed_[i + 1] = true;
  }

  void fuse_backward(std::size_t last, const Fusion& fusion, const void* attributes, std::uint32_t kept) {
    BackwardArgs& args = backward_args(last);
    const std::uint32_t between[] = {read(last), read(last - 1)};
    const CommandText::Use gradient = plan_.texts[last - 2].uses.front();
    args.attributes = attributes;
    args.output_gradient = backward_args(last - 2).output_gradient;
    plan_.arrays[gradient.array].places.push_back(&args.output_gradient.data);
    move_reads(last - 2, last);
    plan_.commands[last].backward = fusion.backward;
    plan_.texts[last].name = cat(fusion.name, " backward");
    plan_.texts[last].uses.front() = gradient;
    args.aux = kept_operand(last, kept, false);
    removed_[last - 1] = removed_[last - 2] = true;
    for (const std::uint32_t array : between) plan_.arrays[array].places.clear();
  }

  FrozenPlan& plan_;
  std::vector<Commands> users_;  ///< of each array, in order
  std::vector<bool> removed_;
};

}  // namespace

void fuse(FrozenPlan& plan) { Fuser(plan).run(); }

}  // namespace taper::detail
