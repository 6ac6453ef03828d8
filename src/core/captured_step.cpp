#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/capture.hpp"
#include "taper/plan.hpp"

namespace taper {

namespace {

/// Copies of inputs, for a recording: what the step reaches by itself stays apart from them, even if it is the same
/// memory in this call. Inputs with the same memory have it in common again.
std::vector<Tensor> copies_of(std::span<const autograd::Input> inputs) {
  std::vector<Tensor> copies;
  for (const autograd::Input& input : inputs) {
    const detail::TensorImpl& impl = *input.tensor->impl();
    const auto twin = std::find_if(inputs.begin(), inputs.begin() + std::ptrdiff_t(copies.size()),
                                   [&](auto& other) { return other.tensor->impl()->buffer == impl.buffer; });
    const std::size_t i = std::size_t(twin - inputs.begin());
    detail::Buffer* buffer =
        i < copies.size() ? detail::retain(copies[i].impl()->buffer) : detail::new_buffer(impl.buffer->bytes);
    if (i == copies.size()) std::memcpy(buffer->data(), impl.buffer->data(), buffer->bytes);
    copies.push_back(detail::adopt(buffer, impl.shape, impl.dtype));
  }
  return copies;
}

/// Hands on what the step changed in place.
void copy_changes(const std::vector<Tensor>& copies, std::span<const autograd::Input> inputs, bool always) {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    detail::Buffer *from = copies[i].impl()->buffer, *to = inputs[i].tensor->impl()->buffer;
    if (!always && from->version == 0) continue;
    std::memcpy(to->data(), from->data(), from->bytes);
    to->version += std::exchange(from->version, 0u);
  }
}

}  // namespace

namespace detail {

void fail_number_of_inputs(std::size_t given) {
  fail(ErrorKind::shape, "capture: the step takes another number of inputs: expected as many as its function, got ",
       given);
}

// --- modes of modules -----------------------------------------------------------------------------------------------

namespace {

std::atomic<std::uint64_t> state_of_modules{0};

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014: its mixing function.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t module_state() noexcept { return state_of_modules.load(std::memory_order_relaxed); }

void mode_changed(const void* module) noexcept {
  state_of_modules.fetch_xor(mixed(reinterpret_cast<std::uintptr_t>(module)), std::memory_order_relaxed);
}

void module_changed() noexcept {
  static std::atomic<std::uint64_t> changes{0};
  state_of_modules.fetch_xor(mixed(0x9E3779B97F4A7C15u + changes.fetch_add(1, std::memory_order_relaxed)),
                             std::memory_order_relaxed);
}

}  // namespace detail

// --- the step -------------------------------------------------------------------------------------------------------

using autograd::Input;

struct CapturedStep::State {
  std::unique_ptr<detail::StepFunction> function;
  CaptureOptions options;
  std::vector<Shared<detail::FrozenPlan>> plans;  ///< the one used last in front
  std::string refusal;
  std::vector<Tensor> results;  ///< of the last run that was no replay

  std::vector<Tensor> run(std::span<const Input> inputs) {
    std::vector<Tensor> tensors;
    for (const Input& input : inputs) tensors.push_back(*input.tensor);
    return function->run(tensors);
  }

  const std::vector<Tensor>& run_eagerly(std::span<const Input> inputs) {
    results = run(inputs);
    for (Tensor& result : results)
      if (result.defined()) result = result.detach();
    return results;
  }

  [[gnu::cold]] const std::vector<Tensor>& record(std::span<const Input> inputs) {
    results.clear();
    const std::vector<Tensor> copies = copies_of(inputs);
    detail::Recorder recording(std::vector<Input>(copies.begin(), copies.end()), !options.eager_if_refused);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].tensor->requires_grad())
        recording.refuse("input ", i, " requires grad: expected plain values, got a tensor that is differentiated; ",
                         "pass detach(), and call requires_grad_() inside the step");
    if (!recording.refusal().empty()) {
      refusal = recording.refusal();
      return run_eagerly(inputs);
    }
    results = function->run(copies);
    const auto plan = recording.finish(results);
    refusal = recording.refusal();
    copy_changes(copies, inputs, !plan);
    if (!plan) return results;
    plan->return_inputs(inputs);
    if (plans.size() >= options.max_plans) plans.pop_back();
    plans.insert(plans.begin(), plan);
    results.clear();
    return plan->results;
  }
};

CapturedStep::CapturedStep(detail::StepFunction* adopted, const CaptureOptions& options)
    : state_(new State{.function = std::unique_ptr<detail::StepFunction>(adopted),
                       .options = options,
                       .plans = {},
                       .refusal = {},
                       .results = {}}) {}

CapturedStep::~CapturedStep() { delete state_; }

const std::vector<Tensor>& CapturedStep::call(std::initializer_list<Input> inputs) {
  State& state = *state_;
  const std::span<const Input> given(inputs.begin(), inputs.size());
  for (const Input& input : given) (void)input.tensor->numel();  // refuses undefined ones
  if (detail::recorder)
    detail::recorder->refuse("a captured step was called inside another: expected one, got two; call its function");
  if (!state.options.enabled || !state.refusal.empty() || detail::recorder || detail::is_anomaly_enabled())
    return state.run_eagerly(given);
  for (auto it = state.plans.begin(); it != state.plans.end(); ++it) {
    if (!(*it)->fits(given)) continue;
    std::rotate(state.plans.begin(), it, it + 1);
    return state.plans.front()->replay(given);
  }
  return state.record(given);
}

std::vector<autograd::Plan> CapturedStep::plans() const {
  std::vector<autograd::Plan> plans;
  for (const auto& plan : state_->plans) plans.emplace_back(plan);
  return plans;
}

const std::string& CapturedStep::refusal() const { return state_->refusal; }

void CapturedStep::reset() {
  state_->plans.clear();
  state_->refusal.clear();
}

}  // namespace taper
