#pragma once

#include <string>
#include <unordered_map>

#include "base/fail.hpp"
#include "base/random.hpp"
#include "core/frozen_plan.hpp"
#include "kernels/random_fill.hpp"

namespace taper::detail {

/// Writes down what one run of a step computes. It lives as long as the run; every place that computes asks whether
/// there is one, and tells it before it computes.
class Recorder {
 public:
  /// `strict`: a step that cannot be replayed is an error; otherwise only `refusal` says so.
  Recorder(std::span<const autograd::Input> inputs, bool strict);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// The plan that does what was recorded and returns `results`, which lose their graphs; null when it was refused.
  Shared<FrozenPlan> finish(std::vector<Tensor>& results);
  const std::string& refusal() const { return refusal_; }

  // What happens, told by those who do it, before they do it.
  void forward(const char* name, autograd::Op::Forward function, std::span<const autograd::Input> inputs,
               const autograd::ForwardArgs& args, std::size_t attribute_bytes);
  void backward(const autograd::Op& op, const autograd::BackwardArgs& args, std::size_t attribute_bytes);
  void copy(Buffer* to, Buffer* from);
  void accumulate(Buffer* sum, const Buffer* term, std::int64_t n, DType dtype);
  /// A call that a replay makes again as it is. Nothing that happens in it is recorded; see `Unrecorded`.
  void call(const std::string& name, void (*function)(void*), void* context);
  /// Positions of a random stream were taken; the attributes of the next forward begin with them.
  void drew(const Generator& taken, std::uint64_t n);
  /// A buffer was made, or is about to be freed.
  void made(Buffer* buffer);
  void freed(Buffer* buffer);
  /// A tensor of the step was made a leaf.
  void made_leaf(Node& leaf) { own_leaves_.push_back(&leaf); }
  /// A leaf's gradient is read or added to; was set to what the backward gathered; is dropped.
  void reads_gradient(Node& leaf);
  void set_gradient(Node& leaf);
  void drops_gradient(Node& leaf);
  /// Elements are about to be read or written from outside the operations.
  void touches_elements(const TensorImpl& tensor);

  /// The step cannot be replayed.
  template <class... Parts>
  void refuse(const Parts&... parts) {
    refuse_with(cat("capture: ", parts...));
  }

 private:
  friend class Unrecorded;
  static constexpr std::uint32_t kUntouched = std::uint32_t(-1);

  bool is_off() const { return paused_ || !refusal_.empty(); }
  void refuse_with(const std::string& sentence);
  std::uint32_t add_array(const void* data, Home home);
  std::uint32_t array_to_read(const void* data);
  std::uint32_t array_to_write(const void* data, bool reads_too, const char* writer);
  void keep_apart(std::uint32_t constant);
  void expect_unchanged(std::span<const autograd::Input> inputs);
  void begin_command(const std::string& name, Command command);
  void use(autograd::Operand& operand, bool is_written);
  void draw_into(void* attributes, std::size_t attribute_bytes);
  void refuse_draw();
  PlanLeaf& leaf_of(Node& node, bool expects);
  bool is_own(const Node* node) const;
  void add_output(Tensor& result);
  void refuse_held();

  struct Facts {
    std::string maker;      ///< the operation that wrote it first
    bool is_alive = true;   ///< its buffer has not been freed
    bool was_read = false;  ///< from outside the operations
    bool is_written = false;
  };
  Recorder* before_;
  bool strict_, paused_ = false;
  std::string refusal_;
  Shared<FrozenPlan> plan_;
  std::unordered_map<const void*, std::uint32_t> arrays_;  ///< by address; `kUntouched` when no command used it yet
  std::vector<Facts> facts_;                               ///< of the plan's arrays
  std::vector<const void*> guarded_;
  std::vector<const Node*> own_leaves_;
  bool has_draw_ = false;
  kernels::RandomStart drawn_ = {};
  std::uint64_t draw_count_ = 0;
};

/// While it lives, nothing is recorded: for what a recorded call does inside.
class Unrecorded {
 public:
  Unrecorded() : recorder_(recorder), before_(recorder_ && recorder_->paused_) {
    if (recorder_) recorder_->paused_ = true;
  }
  ~Unrecorded() {
    if (recorder_) recorder_->paused_ = before_;
  }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  Recorder* recorder_;
  bool before_;
};

/// Whether an `AnomalyGuard` lives on this thread.
bool is_anomaly_enabled() noexcept;

// --- modes of modules -----------------------------------------------------------------------------------------------

/// A number that stands for the modes and parameters of all modules: it changes with each change, and returns to what
/// it was when a mode does.
std::uint64_t module_state() noexcept;
/// The training mode of a module was turned over.
void mode_changed(const void* module) noexcept;
/// A module has other parameters or members than before.
void module_changed() noexcept;

}  // namespace taper::detail
