#include "taper/nn/loss.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "kernels/losses.hpp"
#include "reduced_loss.hpp"
#include "spatial.hpp"
#include "taper/creation.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::needs_input;
using autograd::Op;

// --- what the files of losses share ---------------------------------------------------------------------------------

Tensor weight_tensor(const std::vector<double>& values, DType dtype) {
  const Tensor weight = empty({std::int64_t(values.size())}, dtype);
  if (dtype == DType::float32)
    std::transform(values.begin(), values.end(), weight.data<float>(), [](double x) { return float(x); });
  else
    std::copy(values.begin(), values.end(), weight.data<double>());
  return weight;
}

std::span<const char* const> names_of(Reduction) {
  static constexpr const char* kNames[] = {"none", "mean", "sum"};
  return kNames;
}

Tensor Loss::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() != 2)
    fail(ErrorKind::config, type_name(), ": takes a prediction and its target: expected 2, got ", inputs.size());
  return forward(inputs[0], inputs[1]);
}

// --- records: losses of pairs ---------------------------------------------------------------------------------------

namespace {

template <class L>
struct Pair {
  L loss;
  Reduction reduction;
};

template <class L, class T>
void pair_forward(const ForwardArgs& args) {
  const auto& a = args.attributes_as<Pair<L>>();
  const T *x = args.inputs[0].as<T>(), *t = args.inputs[1].as<T>();
  T* y = args.output.as<T>();
  const std::int64_t n = args.inputs[0].numel;
  if (a.reduction == Reduction::none)
    kernels::pair_loss(a.loss, x, t, y, n);
  else
    *y = T(reduced(kernels::pair_loss_sum(a.loss, x, t, n), a.reduction, double(n)));
}

template <class L, class T>
void pair_backward(const BackwardArgs& args) {
  const auto& a = args.attributes_as<Pair<L>>();
  const T *x = args.inputs[0].as<T>(), *t = args.inputs[1].as<T>();
  const std::int64_t n = args.inputs[0].numel;
  kernels::LossGrad<T> dy = loss_gradient<T>(args, a.reduction, double(n));
  for (const GradientSlot& slot : args.input_gradients) {
    if (slot) kernels::pair_loss_grad(a.loss, dy, x, t, slot.template as<T>(), n, slot.add);
    dy.scale = -dy.scale;  // the target's gradient is the negative of the input's
  }
}

template <class L>
constexpr Op pair_op(const char* name, const char* derivative) {
  constexpr std::uint32_t kBoth = needs_input(0) | needs_input(1);
  return {.name = name,
          .derivative = derivative,
          .forward = {pair_forward<L, float>, pair_forward<L, double>, nullptr},
          .backward = {pair_backward<L, float>, pair_backward<L, double>, nullptr},
          .needs = {kBoth, kBoth}};
}

constexpr Op kMse = pair_op<kernels::Mse>("mse_loss", "dx = 2 (x - t) dy / n");
constexpr Op kL1 = pair_op<kernels::L1>("l1_loss", "dx = sign(x - t) dy / n");
constexpr Op kSmoothL1 = pair_op<kernels::SmoothL1>("smooth_l1_loss", "dx = clamp((x - t) / beta, -1, 1) dy / n");
constexpr Op kHuber = pair_op<kernels::Huber>("huber_loss", "dx = clamp(x - t, -delta, delta) dy / n");

// --- records: binary cross entropy ----------------------------------------------------------------------------------

// Inputs are the scores, the targets, and then the weights that are given.
struct Bce {
  Reduction reduction;
  bool has_weight, has_pos_weight;
};

template <class T, class Args>
kernels::BceWithLogits<T> bce_params(const Args& args) {
  const auto& a = args.template attributes_as<Bce>();
  kernels::BceWithLogits<T> p;
  if (a.has_weight) {
    p.weight = args.inputs[2].template as<T>();
    p.weight_length = args.inputs[2].numel;
  }
  if (a.has_pos_weight) {
    p.pos_weight = args.inputs.back().template as<T>();
    p.pos_weight_length = args.inputs.back().numel;
  }
  return p;
}

template <class T>
void bce_forward(const ForwardArgs& args) {
  const Reduction reduction = args.attributes_as<Bce>().reduction;
  const T *x = args.inputs[0].as<T>(), *t = args.inputs[1].as<T>();
  T* y = args.output.as<T>();
  const std::int64_t n = args.inputs[0].numel;
  if (reduction == Reduction::none)
    kernels::bce_with_logits(bce_params<T>(args), x, t, y, n);
  else
    *y = T(reduced(kernels::bce_with_logits_sum(bce_params<T>(args), x, t, n), reduction, double(n)));
}

template <class T>
void bce_backward(const BackwardArgs& args) {
  const T *x = args.inputs[0].as<T>(), *t = args.inputs[1].as<T>();
  const std::int64_t n = args.inputs[0].numel;
  const auto dy = loss_gradient<T>(args, args.attributes_as<Bce>().reduction, double(n));
  const GradientSlot &dx = args.input_gradients[0], &dt = args.input_gradients[1];
  if (dx) kernels::bce_with_logits_grad(bce_params<T>(args), dy, x, t, dx.as<T>(), n, dx.add);
  if (dt) kernels::bce_with_logits_target_grad(bce_params<T>(args), dy, x, dt.as<T>(), n, dt.add);
}

constexpr std::uint32_t kLossInputs = needs_input(0) | needs_input(1) | needs_input(2) | needs_input(3);
constexpr Op kBce{.name = "binary_cross_entropy_with_logits",
                  .derivative = "dx = (sigmoid(x) - t) dy / n",
                  .forward = {bce_forward<float>, bce_forward<double>, nullptr},
                  .backward = {bce_backward<float>, bce_backward<double>, nullptr},
                  .needs = {kLossInputs, kLossInputs}};

// --- checks ---------------------------------------------------------------------------------------------------------

void check_pair(const char* where, const Tensor& input, const Tensor& target) {
  check_floating(where, input.dtype());
  if (!(target.shape() == input.shape()))
    fail(ErrorKind::shape, where, ": target and input have different shapes: expected ", input.shape(), ", got ",
         target.shape(), "; reshape one of them");
  if (target.dtype() != input.dtype())
    fail(ErrorKind::type, where, ": target and input have different element types: expected ", input.dtype(), ", got ",
         target.dtype(), "; convert with to()");
}

void check_repeating(const char* which, const std::vector<double>& weight, const Shape& input) {
  const std::int64_t last = input.rank() == 0 ? 1 : input.back(), length = std::int64_t(weight.size());
  if (length > 1 && length != last)
    fail(ErrorKind::config, kBce.name, ": ", which, " must have one number or one for each position of the last ",
         "dimension of ", input, ": expected ", last, ", got ", length);
}

template <class L>
Tensor pair_loss(const Op& op, const Tensor& input, const Tensor& target, const L& loss, Reduction reduction) {
  check_pair(op.name, input, target);
  return apply(op, {input, target}, reduction == Reduction::none ? input.shape() : Shape(), input.dtype(),
               Pair<L>{loss, reduction});
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossOptions& options) {
  return pair_loss(kMse, input, target, kernels::Mse{}, options.reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossOptions& options) {
  return pair_loss(kL1, input, target, kernels::L1{}, options.reduction);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& options) {
  if (!(options.beta >= 0)) check_fields(kSmoothL1.name, options);
  return pair_loss(kSmoothL1, input, target, kernels::SmoothL1{options.beta}, options.reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& options) {
  if (!(options.delta > 0)) check_fields(kHuber.name, options);
  return pair_loss(kHuber, input, target, kernels::Huber{options.delta}, options.reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BCEWithLogitsLossOptions& options) {
  check_pair(kBce.name, input, target);
  check_repeating("weight", options.weight, input.shape());
  check_repeating("pos_weight", options.pos_weight, input.shape());
  const Bce attributes{options.reduction, !options.weight.empty(), !options.pos_weight.empty()};
  Tensor weight, pos_weight;
  std::size_t n = 2;
  const Tensor* inputs[4] = {&input, &target};
  if (attributes.has_weight) inputs[n++] = &(weight = weight_tensor(options.weight, input.dtype()));
  if (attributes.has_pos_weight) inputs[n++] = &(pos_weight = weight_tensor(options.pos_weight, input.dtype()));
  const autograd::Input list[] = {*inputs[0], *inputs[1], n > 2 ? *inputs[2] : input, n > 3 ? *inputs[3] : input};
  return apply(kBce, std::span(list, n), options.reduction == Reduction::none ? input.shape() : Shape(), input.dtype(),
               &attributes, sizeof attributes);
}

}  // namespace functional

// --- losses ---------------------------------------------------------------------------------------------------------

MSELoss::MSELoss(Options options) : Layer(options) {}
Tensor MSELoss::forward(const Tensor& input, const Tensor& target) {
  return functional::mse_loss(input, target, options_);
}

L1Loss::L1Loss(Options options) : Layer(options) {}
Tensor L1Loss::forward(const Tensor& input, const Tensor& target) {
  return functional::l1_loss(input, target, options_);
}

SmoothL1Loss::SmoothL1Loss(Options options) : Layer(options) {}
Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) {
  return functional::smooth_l1_loss(input, target, options_);
}

HuberLoss::HuberLoss(Options options) : Layer(options) {}
Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::huber_loss(input, target, options_);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(Options options) : Layer(std::move(options)) {}
Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::binary_cross_entropy_with_logits(input, target, options_);
}

// --- fields ---------------------------------------------------------------------------------------------------------

namespace {

void reduction_field(Reduction& reduction, FieldVisitor& visit) {
  visit({"reduction", "the losses' mean or sum, or each of them"}, reduction);
}

}  // namespace

void fields(MSELossOptions& o, FieldVisitor& visit) { reduction_field(o.reduction, visit); }

void fields(L1LossOptions& o, FieldVisitor& visit) { reduction_field(o.reduction, visit); }

void fields(SmoothL1LossOptions& o, FieldVisitor& visit) {
  visit({"beta", "below this difference the loss is quadratic; 0: nowhere", kNonNegative}, o.beta);
  reduction_field(o.reduction, visit);
}

void fields(HuberLossOptions& o, FieldVisitor& visit) {
  visit({"delta", "up to this difference the loss is quadratic", kAboveZero}, o.delta);
  reduction_field(o.reduction, visit);
}

void fields(BCEWithLogitsLossOptions& o, FieldVisitor& visit) {
  visit({"weight", "how much each position of the last dimension counts; empty: all the same"}, o.weight);
  visit({"pos_weight", "how much more a target of 1 counts, one number or one for each position"}, o.pos_weight);
  reduction_field(o.reduction, visit);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

namespace {

template <class L>
LossType loss_type(const char* summary, bool takes_classes) {
  using O = typename L::Options;
  return {.name = O::kType,
          .summary = summary,
          .takes_classes = takes_classes,
          .new_options = []() -> Shared<void> { return Shared<O>::make(); },
          .visit = [](void* options, FieldVisitor& visitor) { fields(*static_cast<O*>(options), visitor); },
          .make = [](const void* options) -> Shared<Loss> { return Shared<L>::make(*static_cast<const O*>(options)); }};
}

}  // namespace

const std::vector<LossType>& loss_types() {
  static const std::vector<LossType> types = {
      loss_type<CrossEntropyLoss>("Softmax and cross entropy of class scores.", true),
      loss_type<NLLLoss>("Negative log likelihood of class log-probabilities.", true),
      loss_type<MSELoss>("Mean squared error.", false),
      loss_type<L1Loss>("Mean absolute error.", false),
      loss_type<SmoothL1Loss>("Squared error near 0, absolute error beyond beta.", false),
      loss_type<HuberLoss>("Squared error up to delta, absolute error beyond, scaled by delta.", false),
      loss_type<BCEWithLogitsLoss>("Sigmoid and binary cross entropy of scores.", false),
  };
  return types;
}

const LossType* find_loss_type(const std::string& name) {
  for (const LossType& type : loss_types())
    if (type.name == name) return &type;
  return nullptr;
}

}  // namespace taper::nn
