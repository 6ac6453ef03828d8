// An operation and a layer of one's own, from the formula to JSON.
//
// huberise(x) = x^2 / 2 near zero and grows along the tangent beyond +-delta: a square that outliers cannot blow up.
// The record below is all there is to an operation; the library's own are written the same way.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <taper/taper.hpp>

using namespace taper;

namespace {

// --- the operation --------------------------------------------------------------------------------------------------

// Copied into the node byte by byte, so plain data only.
struct HuberiseAttributes {
  double delta;
};

template <class T>
void huberise_forward(const autograd::ForwardArgs& args) {
  const T* x = args.inputs[0].as<T>();
  T* y = args.output.as<T>();
  const T delta = T(args.attributes_as<HuberiseAttributes>().delta);
  // y = x^2 / 2 where |x| <= delta, else delta (|x| - delta / 2)
  for (std::int64_t i = 0; i < args.output.numel; ++i) {
    const T size = std::abs(x[i]);
    y[i] = size <= delta ? x[i] * x[i] / 2 : delta * (size - delta / 2);
  }
}

template <class T>
void huberise_backward(const autograd::BackwardArgs& args) {
  // Nobody may need the gradient: then its memory is not there.
  const autograd::GradientSlot& slot = args.input_gradients[0];
  if (!slot) return;
  const T* dy = args.output_gradient.as<T>();
  const T* x = args.inputs[0].as<T>();
  T* dx = slot.as<T>();
  const T delta = T(args.attributes_as<HuberiseAttributes>().delta);
  // dx = dy clamp(x, -delta, delta); the slot says whether to write it or to add to what another reader of x left there
  for (std::int64_t i = 0; i < slot.gradient.numel; ++i) {
    const T step = dy[i] * std::clamp(x[i], -delta, delta);
    dx[i] = slot.add ? dx[i] + step : step;
  }
}

constexpr autograd::Op kHuberise{
    .name = "huberise",
    .derivative = "dx = dy clamp(x, -delta, delta)",
    .forward = {huberise_forward<float>, huberise_forward<double>, nullptr},  // by element type; int64 is refused
    .backward = {huberise_backward<float>, huberise_backward<double>, nullptr},
    .needs = {autograd::needs_input(0)},  // the gradient reads x, so the tape keeps it
};

Tensor huberise(const Tensor& x, double delta) {
  return autograd::apply(kHuberise, {x}, x.shape(), x.dtype(), HuberiseAttributes{delta});
}

// --- the layer ------------------------------------------------------------------------------------------------------

struct HuberiseOptions {
  static constexpr const char* kType = "Huberise";
  double delta = 1;
};

// Each option named once: its key, its help, its rule. Reading JSON, checking, printing and documentation follow.
void fields(HuberiseOptions& options, FieldVisitor& visitor) {
  visitor({"delta", "where the square turns into a line", kAboveZero}, options.delta);
}

struct Huberise : nn::Layer<HuberiseOptions> {
  explicit Huberise(HuberiseOptions options = {}) : Layer(options) {}
  Tensor forward(const Tensor& x) override { return huberise(x, options_.delta); }
  // The shape law, so that shapes are known before anything is built.
  static Shape infer(HuberiseOptions&, std::span<const Shape> inputs) { return inputs[0]; }
};

}  // namespace

int main() {
  const Tensor x = tensor({-3., -0.5, 0., 1., 4.}).requires_grad_();
  const Tensor y = huberise(x, 1.0);
  // x has two readers, y and the square: one gradient is written, the other added.
  (y.sum() + (x * x).sum()).backward();
  std::printf("y      = %s\n", y.to_string().c_str());
  std::printf("x.grad = %s\n\n", x.grad().to_string().c_str());

  // gradcheck compares the backward with difference quotients of the forward, in float64. It is worth the two lines
  // for every operation: a sign or a factor that is wrong still trains, only badly. The points keep clear of the
  // corners at +-delta, where the second derivative jumps and quotients are less exact.
  const Tensor points = tensor({-3., -1.2, -0.4, 0.1, 0.7, 2.5}, DType::float64).requires_grad_();
  const auto report = autograd::gradcheck([](const auto& in) { return huberise(in[0], 0.9); }, {points});
  std::printf("gradcheck: %s\n\n", report.ok ? "passed" : report.to_string().c_str());

  // From here on JSON knows the layer like any other, its rules and its example included.
  nn::register_layer<Huberise>("x^2 / 2 near zero, a line beyond: [*] -> [*].", R"({"delta": 0.5})", {{2, 3, 5}});
  const auto model = model_from_json(R"({
  "input": {"shape": [2]},
  "layers": [
    {"type": "Linear", "name": "fc", "out_features": 3},
    {"type": "Huberise", "delta": 0.5}
  ]
})");
  std::printf("%s\n", model->to_string().c_str());
  std::printf("output %s\n", to_string((*model)(ones({4, 2})).shape()).c_str());
  try {
    model_from_json(R"({"input": {"shape": [2]}, "layers": [{"type": "Huberise", "delta": -1}]})");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}
