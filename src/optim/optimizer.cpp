#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "core/capture.hpp"
#include "kernels/optimizers.hpp"
#include "optim/state_reader.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/optim.hpp"

namespace taper::optim {

namespace {

constexpr const char* kOptimizerPrefix = "optimizer.";

using Before = bool (*)(const NamedTensor* a, const NamedTensor* b);

/// Refuses two parameters neither of which is before the other.
void refuse_twins(const char* where, const std::vector<NamedTensor>& parameters, const char* what, Before before) {
  std::vector<const NamedTensor*> sorted;
  for (const auto& parameter : parameters) sorted.push_back(&parameter);
  std::sort(sorted.begin(), sorted.end(), before);
  const auto twin = std::adjacent_find(sorted.begin(), sorted.end(), [=](auto* a, auto* b) { return !before(a, b); });
  if (twin == sorted.end()) return;
  const auto [first, second] = std::minmax(twin[0], twin[1]);
  fail(ErrorKind::config, where, ": ", what, " given twice: expected each once, got ", first->name, " and ",
       second->name);
}

void check_parameters(const char* where, const std::vector<NamedTensor>& parameters) {
  if (parameters.empty()) fail(ErrorKind::config, where, ": no parameters: expected at least one, got none");
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.is_leaf())
      fail(ErrorKind::tape, where, ": parameter ", name,
           " was computed: expected a leaf, got the result of an operation; detach() it");
    if (!is_floating(tensor.dtype()))
      fail(ErrorKind::type, where, ": parameter ", name, " cannot be optimised: expected float32 or float64, got ",
           tensor.dtype());
  }
  refuse_twins(where, parameters, "a parameter is",
               [](const NamedTensor* a, const NamedTensor* b) { return a->tensor.impl() < b->tensor.impl(); });
  refuse_twins(where, parameters, "a name is",
               [](const NamedTensor* a, const NamedTensor* b) { return a->name < b->name; });
}

void check_lr(const char* where, double lr) {
  if (!(lr >= 0 && std::isfinite(lr)))
    fail(ErrorKind::config, where, ": lr is out of range: expected a finite number >= 0, got ", lr);
}

}  // namespace

std::vector<NamedTensor> numbered(const std::vector<Tensor>& parameters) {
  std::vector<NamedTensor> named;
  for (const Tensor& parameter : parameters) named.push_back({cat(named.size()), parameter});
  return named;
}

Optimizer::Optimizer(const char* where, std::vector<NamedTensor> parameters, double lr)
    : where_(where), parameters_(std::move(parameters)), states_(parameters_.size()), lr_(lr) {
  check_parameters(where, parameters_);
  check_lr(where, lr);
}

Optimizer::~Optimizer() = default;

void Optimizer::set_lr(double lr) {
  check_lr(where_, lr);
  lr_ = lr;
}

void Optimizer::zero_grad() {
  for (const auto& parameter : parameters_) parameter.tensor.zero_grad();
}

void Optimizer::make_buffers(const Tensor& parameter, State& state) const {
  State made;
  for (std::size_t k = 0; k < buffer_names().size(); ++k) made.buffers[k] = full_like(parameter, initial_value());
  state = std::move(made);
}

void Optimizer::step() {
  if (detail::recorder) [[unlikely]]
    detail::recorder->call(
        cat(where_, ".step"), [](void* self) { static_cast<Optimizer*>(self)->step(); }, this);
  const detail::Unrecorded unrecorded;
  const NoGradGuard no_grad;
  gathered_.clear();
  DType dtype = DType::float32;
  std::int64_t step = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const detail::TensorImpl& parameter = *parameters_[i].tensor.impl();
    const detail::NodeExtra* extra = parameter.node ? parameter.node->extra : nullptr;
    if (!extra || !extra->gradient.defined()) continue;
    State& state = states_[i];
    if (state.step == 0) make_buffers(parameters_[i].tensor, state);
    ++state.step;
    if (state.step != step || parameter.dtype != dtype) update_gathered(dtype, step);
    step = state.step;
    dtype = parameter.dtype;
    const auto memory = [](const Tensor& t) { return t.defined() ? t.impl()->buffer->data() : nullptr; };
    kernels::StepArrays& arrays = gathered_.emplace_back();
    arrays.p = parameter.buffer->data();
    arrays.g = memory(extra->gradient);
    for (std::size_t k = 0; k < kMaxBuffers; ++k) arrays.state[k] = memory(state.buffers[k]);
    arrays.n = parameter.shape.numel();
    ++parameter.buffer->version;
  }
  update_gathered(dtype, step);
}

void Optimizer::update_gathered(DType dtype, std::int64_t step) {
  if (!gathered_.empty()) update(gathered_, dtype, step);
  gathered_.clear();
}

// --- state ----------------------------------------------------------------------------------------------------------

std::vector<NamedTensor> Optimizer::state_dict() const {
  std::vector<NamedTensor> out{{cat(kOptimizerPrefix, "lr"), scalar(lr_, DType::float64)}};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const State& state = states_[i];
    if (state.step == 0) continue;
    const std::string prefix = kOptimizerPrefix + parameters_[i].name + ".";
    out.push_back({prefix + "step", from_data(&state.step, Shape())});
    for (std::size_t k = 0; k < buffer_names().size(); ++k)
      out.push_back({prefix + buffer_names()[k], state.buffers[k].detach()});
  }
  return out;
}

void Optimizer::load_state_dict(const std::vector<NamedTensor>& state) {
  const NoGradGuard no_grad;
  StateReader reader(where_, state);
  const double lr = reader.take(cat(kOptimizerPrefix, "lr"), Shape(), true).item();
  check_lr(where_, lr);
  std::vector<State> states(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    const std::string prefix = kOptimizerPrefix + name + ".";
    if (!reader.find(prefix + "step")) continue;  // a parameter that never had a gradient
    states[i].step = *reader.take(prefix + "step", Shape(), false).data<std::int64_t>();
    if (states[i].step < 1)
      fail(ErrorKind::config, where_, ": ", prefix, "step is out of range: expected >= 1, got ", states[i].step);
    for (std::size_t k = 0; k < buffer_names().size(); ++k) {
      states[i].buffers[k] = empty_like(parameter);
      states[i].buffers[k].copy_(reader.take(prefix + buffer_names()[k], parameter.shape(), true));
    }
  }
  reader.refuse_rest();
  states_ = std::move(states);
  lr_ = lr;
}

}  // namespace taper::optim
