#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

/// Recording and differentiation.
///
/// If grad mode is on and an input requires grad, an operation is recorded as a node that knows its operation, its
/// producers and the values its gradient will read. Handles keep data alive; a result keeps the nodes that produced
/// it alive; leaves keep their gradients until `zero_grad`; nothing points from data forward, so there are no cycles.
namespace taper::autograd {

// --- grad mode ------------------------------------------------------------------------------------------------------

/// Whether this thread records.
bool is_grad_enabled() noexcept;

/// Sets grad mode for its lifetime, on this thread.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) noexcept;
  ~GradModeGuard();
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};

/// While it lives, backward looks for NaN in every gradient and names the operation that made the first one.
class AnomalyGuard {
 public:
  AnomalyGuard() noexcept;
  ~AnomalyGuard();
  AnomalyGuard(const AnomalyGuard&) = delete;
  AnomalyGuard& operator=(const AnomalyGuard&) = delete;

 private:
  bool before_;
};

// --- operations -----------------------------------------------------------------------------------------------------

/// One array as an operation's functions see it: memory, extents, element type.
struct Operand {
  void* data = nullptr;
  const std::int64_t* extents = nullptr;
  std::int64_t numel = 0;
  std::int32_t rank = 0;
  DType dtype = DType::float32;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  /// A template so that including it costs nothing.
  template <class Extent = const std::int64_t>
  std::span<Extent> shape() const {
    return {extents, std::size_t(rank)};
  }
};

struct ForwardArgs {
  std::span<const Operand> inputs;
  Operand output;
  std::span<const Operand> aux;  ///< further arrays the forward fills and the backward reads
  const void* attributes;

  template <class A>
  const A& attributes_as() const {
    return *static_cast<const A*>(attributes);
  }
};

/// Where the gradient of one input goes. `data` is null when nobody needs it.
struct GradientSlot {
  Operand gradient;
  bool add = false;  ///< true: add to what is there; false: overwrite, the memory is uninitialised

  explicit operator bool() const { return gradient.data != nullptr; }
  template <class T>
  T* as() const {
    return gradient.as<T>();
  }
};

struct BackwardArgs {
  Operand output_gradient;
  std::span<const Operand> inputs;  ///< shapes always; data only of inputs the op declared in `needs`
  Operand output;                   ///< data only if declared in `needs`
  std::span<const Operand> aux;
  std::span<const GradientSlot> input_gradients;  ///< distinct memory each
  const void* attributes;

  template <class A>
  const A& attributes_as() const {
    return *static_cast<const A*>(attributes);
  }
};

/// Bits for `Op::needs`.
inline constexpr std::uint32_t kNeedsNothing = 0;
constexpr std::uint32_t needs_input(int i) { return 1u << i; }
inline constexpr std::uint32_t kNeedsOutput = 1u << 31;

/// A differentiable operation as a constant record. The library's own operations and yours are the same.
///
/// `forward` and `backward` are indexed by the element type of the first input; null where it is not supported.
/// They see raw memory only: they must not throw, must not allocate tensors, and may be called again later.
struct Op {
  using Forward = void (*)(const ForwardArgs&);
  using Backward = void (*)(const BackwardArgs&);

  const char* name;
  const char* derivative;        ///< one line of mathematics for tapes and lessons, "dx = dy * (1 - y^2)"
  Forward forward[kDTypeCount];  ///< float32, float64, int64
  Backward backward[kDTypeCount];
  /// What the gradient of input i reads; the last entry stands for all further inputs.
  std::uint32_t needs[4] = {};
  /// Bit i: the gradient of input i is the output's, unchanged, whenever both have the same number of elements.
  std::uint32_t passes_gradient = 0;
};

/// A non-owning reference to an input, so that calls can be written `apply(op, {a, b}, ...)`.
struct Input {
  const Tensor* tensor;
  Input(const Tensor& t) : tensor(&t) {}
};

/// Runs `op` and records it if grad mode is on and an input requires grad. The caller has checked the shapes.
/// `attributes` are copied bytewise into the node. `aux` tensors are filled by the forward and kept for the backward.
/// Errors: `ErrorKind::type` when the op does not take the first input's element type or floating types are mixed.
Tensor apply(const Op& op, std::span<const Input> inputs, const Shape& output_shape, DType output_dtype,
             const void* attributes = nullptr, std::size_t attribute_bytes = 0, std::span<const Input> aux = {});

struct NoAttributes {};

/// The same for inputs and arrays one after another.
Tensor apply(const Op& op, const Input* inputs, std::size_t input_count, const Shape& output_shape, DType output_dtype,
             const void* attributes, std::size_t attribute_bytes, const Input* aux, std::size_t aux_count);

template <class A = NoAttributes>
Tensor apply(const Op& op, std::initializer_list<Input> inputs, const Shape& output_shape, DType output_dtype,
             const A& attributes = {}, std::initializer_list<Input> aux = {}) {
  static_assert(std::is_trivially_copyable_v<A> && alignof(A) <= 8, "attributes are copied into the node bytewise");
  return apply(op, inputs.begin(), inputs.size(), output_shape, output_dtype, &attributes,
               std::is_empty_v<A> ? 0 : sizeof(A), aux.begin(), aux.size());
}

/// As `apply`, but the result replaces the data of the first input, whose version counter grows.
/// The forward must allow `output` to be `inputs[0]`. Errors: `ErrorKind::tape` where PyTorch refuses it too.
void apply_in_place(const Op& op, std::span<const Input> inputs, const void* attributes = nullptr,
                    std::size_t attribute_bytes = 0);

/// The same data under another shape with as many elements, recorded.
Tensor share_as(const Tensor& input, const Shape& shape);

// --- differentiation ------------------------------------------------------------------------------------------------

struct GradOptions {
  bool retain_graph = false;
  bool allow_unused = false;  ///< an input that the outputs do not depend on gives an undefined gradient
  bool create_graph = false;  ///< not offered: an error
};

/// Gradients of `outputs` (weighted by `grad_outputs`, ones for scalars) with respect to `inputs`; leaves' `grad()`
/// stay as they are.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs = {}, const GradOptions& options = {});

/// The nodes that produced a tensor, in recorded order.
class Tape {
 public:
  struct Entry {
    std::uint64_t number = 0;  ///< position; grows in recorded order
    std::string op;            ///< "leaf" for a tensor the user made
    std::string name;          ///< what `set_name` said
    std::string derivative;
    Shape shape;
    DType dtype = DType::float32;
    std::vector<std::uint64_t> inputs;  ///< numbers of the producers; 0 for an input that needs no gradient
    std::vector<Shape> input_shapes;
    std::vector<std::string> saved;  ///< "input 0", "output", "aux 0", with shape
    bool released = false;           ///< a backward has freed what was saved
    Tensor gradient;                 ///< what `grad()` would give; may be undefined
  };

  /// Errors: `ErrorKind::tape` when the tensor does not require grad.
  static Tape of(const Tensor& tensor);

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  /// A table: number, op, shape, inputs, saved, gradient.
  std::string to_string() const;

 private:
  std::vector<Entry> entries_;
};

// --- gradient check -------------------------------------------------------------------------------------------------

struct GradcheckOptions {
  double eps = 1e-3;  ///< step of the 4th-order stencil
  double atol = 1e-9;
  double rtol = 1e-7;
};

struct GradcheckReport {
  bool ok = true;
  std::string op;  ///< the operation whose result was checked
  std::size_t input = 0;
  std::int64_t element = 0;
  double analytic = 0, numeric = 0;

  /// "gradient of conv1d with respect to input 1, element 4: analytic 0.25, numeric 0.5".
  std::string to_string() const;
};

/// Compares the recorded gradient of `function` with a 4th-order difference quotient, for every element of every
/// float64 input that requires grad, under a fixed pseudo-random weighting of the outputs.
/// `function` takes `const std::vector<Tensor>&` and returns a `Tensor`. Errors: `ErrorKind::type` unless float64.
GradcheckReport gradcheck(Tensor (*function)(const std::vector<Tensor>&, void*), void* context,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

template <class F>
GradcheckReport gradcheck(F function, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  const auto call = [](const std::vector<Tensor>& x, void* f) { return (*static_cast<F*>(f))(x); };
  return gradcheck(+call, &function, inputs, options);
}

}  // namespace taper::autograd

namespace taper {

/// Switches recording off (on) for its lifetime, on this thread.
struct NoGradGuard : autograd::GradModeGuard {
  NoGradGuard() noexcept : GradModeGuard(false) {}
};
struct EnableGradGuard : autograd::GradModeGuard {
  EnableGradGuard() noexcept : GradModeGuard(true) {}
};

}  // namespace taper

#pragma GCC visibility pop
