#pragma once

#include "taper/autograd.hpp"

#pragma GCC visibility push(default)

/// Capture and replay: a step of a training or an evaluation is recorded once and then repeated without any of the work
/// around its kernels.
namespace taper {

namespace detail {

class FrozenPlan;

/// The step function of a `CapturedStep`, whatever its type.
struct StepFunction {
  virtual ~StepFunction() = default;
  virtual std::vector<Tensor> run(std::span<const Tensor> inputs) = 0;
};

}  // namespace detail

namespace autograd {

/// What one run of a step did, frozen: calls of kernels one after another, on memory that is planned ahead.
///
/// Arrays that live only inside the step share one block, placed by when they are needed. Parameters, their gradients,
/// buffers of modules and the state of the optimiser stay where they are.
class Plan {
 public:
  /// How many calls a replay makes.
  std::size_t size() const;
  /// Bytes of the block that the arrays of the step share.
  std::size_t bytes() const;
  /// Bytes of the arrays that are needed at the same time, where these are most: no placement can do with less.
  std::size_t lower_bound_bytes() const;
  /// Bytes of arrays that the step made without an operation, as `zeros` does; they are kept as they were.
  std::size_t constant_bytes() const;
  /// A table: number, kernel, what it reads, what it writes. "@128 [2, 3]" is an array at that offset of the block.
  std::string to_string() const;

  /// For the library itself.
  explicit Plan(Shared<detail::FrozenPlan> frozen) : frozen_(std::move(frozen)) {}

 private:
  Shared<detail::FrozenPlan> frozen_;
};

}  // namespace autograd

struct CaptureOptions {
  /// Off: every call runs the step as it is.
  bool enabled = true;
  /// What happens to a step that cannot be replayed: false: an error says why; true: it runs as it is, and
  /// `CapturedStep::refusal` says why.
  bool eager_if_refused = false;
  /// Plans that are kept, one for each combination of input shapes; beyond, the one unused for longest is dropped.
  std::size_t max_plans = 8;
};

/// A step that is recorded at its first call for each combination of input shapes and types, and replayed at later
/// ones.
///
///     CapturedStep step([&](const Tensor& x, const Tensor& y) {
///       optimizer.zero_grad();
///       const Tensor loss = criterion(model(x), y);
///       loss.backward();
///       optimizer.step();
///       return loss;
///     });
///     for (...) total += step(x, y)[0].item();
///
/// A replay gives, bit for bit, what the step would have given: results, parameters, gradients, buffers of modules, the
/// state of optimisers, the position of the random numbers. It allocates nothing, unless a result or gradient of the
/// call before is still held, which then keeps its values.
///
/// The step's function takes tensors and returns a tensor, a vector of them, or nothing. Frozen are:
/// - branches, loops and plain numbers of the function. What depends on values of tensors cannot be frozen: reading an
///   element inside the step is refused, as is keeping a result anywhere but in the returned ones;
/// - tensors other than the inputs, by handle: their values are read anew, but a handle that is assigned another tensor
///   is not noticed; `reset()` then. `Module::train`, `eval`, `to` and `requires_grad_` are noticed, and lead to
///   another plan;
/// - arrays filled without operations, from numbers or through `data()`.
/// Read anew are the learning rate and all else an optimiser knows, and random numbers.
///
/// Returned tensors carry no graph: call `backward` inside the step. Everything the function refers to must outlive
/// this object. One thread at a time. Differs: PyTorch has `torch.compile` and CUDA graphs for this; the contract is
/// that of the latter, with checks.
class CapturedStep {
 public:
  template <class F>
  explicit CapturedStep(F step, const CaptureOptions& options = {});
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Runs or replays the step. Errors: those of the step; `ErrorKind::tape`, `capture: ...`, for a step that cannot be
  /// replayed. After an error nothing is kept of the attempt.
  template <class... Inputs>
  const std::vector<Tensor>& operator()(const Inputs&... inputs) {
    return call({autograd::Input(inputs)...});
  }
  const std::vector<Tensor>& call(std::initializer_list<autograd::Input> inputs);

  /// The plans made so far, the one used last in front.
  std::vector<autograd::Plan> plans() const;
  /// Why the step is not replayed; empty when it is.
  const std::string& refusal() const;
  /// Forgets all plans and refusals.
  void reset();

 private:
  struct State;
  CapturedStep(detail::StepFunction* adopted, const CaptureOptions& options);

  State* state_;
};

// --- details --------------------------------------------------------------------------------------------------------

namespace detail {

[[noreturn]] void fail_number_of_inputs(std::size_t given);

template <class F>
struct HeldStep final : StepFunction {
  explicit HeldStep(F&& f) : function(std::move(f)) {}

  template <class... T>
  static std::vector<Tensor> results(F& f, const T&... x) {
    if constexpr (!std::is_invocable_v<F&, const T&...>) {
      fail_number_of_inputs(sizeof...(T));
    } else {
      using Result = std::invoke_result_t<F&, const T&...>;
      if constexpr (std::is_void_v<Result>) {
        f(x...);
        return {};
      } else if constexpr (std::is_convertible_v<Result, Tensor>) {
        return {f(x...)};
      } else {
        return f(x...);
      }
    }
  }

  std::vector<Tensor> run(std::span<const Tensor> x) override {
    if constexpr (std::is_invocable_v<F&, std::span<const Tensor>>) return results(function, x);
    switch (x.size()) {
      case 0:
        return results(function);
      case 1:
        return results(function, x[0]);
      case 2:
        return results(function, x[0], x[1]);
      case 3:
        return results(function, x[0], x[1], x[2]);
      default:
        fail_number_of_inputs(x.size());
    }
  }

  F function;
};

}  // namespace detail

template <class F>
CapturedStep::CapturedStep(F step, const CaptureOptions& options)
    : CapturedStep(static_cast<detail::StepFunction*>(new detail::HeldStep<F>(std::move(step))), options) {}

}  // namespace taper

#pragma GCC visibility pop
