#include <span>

#include "base/fail.hpp"
#include "core/effect.hpp"
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

// --- records --------------------------------------------------------------------------------------------------------

namespace {

struct Attributes {
  kernels::ClassLoss loss;
  Reduction reduction;
};

// Inputs are the scores, the targets and, if given, the class weights. Aux 0 holds a float64 number a row and then the
// divisor of the mean, aux 1 the losses of the rows where the output holds only their mean or sum.
template <class T, class Args>
const T* class_weight(const Args& args) {
  return args.inputs.size() > 2 ? args.inputs[2].template as<T>() : nullptr;
}

/// Calls `rows(where the losses of the rows go)`, and joins them as the reduction says.
template <class T, class Rows>
void reduce_rows(const ForwardArgs& args, double divisor, const Rows& rows) {
  const auto& a = args.attributes_as<Attributes>();
  const std::int64_t n = a.loss.rows();
  args.aux[0].as<double>()[n] = divisor;
  if (a.reduction == Reduction::none) return rows(args.output.as<T>());
  T* losses = args.aux[1].as<T>();
  rows(losses);
  *args.output.as<T>() = T(reduced(kernels::sum_losses(losses, n), a.reduction, divisor));
}

template <class T>
kernels::LossGrad<T> row_gradient(const BackwardArgs& args) {
  const auto& a = args.attributes_as<Attributes>();
  return loss_gradient<T>(args, a.reduction, args.aux[0].as<double>()[a.loss.rows()]);
}

template <class T>
void indices_forward(const ForwardArgs& args) {
  const auto& p = args.attributes_as<Attributes>().loss;
  const auto* target = args.inputs[1].as<std::int64_t>();
  const T* weight = class_weight<T>(args);
  reduce_rows<T>(args, kernels::target_weight(p, target, weight), [&](T* losses) {
    kernels::cross_entropy(p, args.inputs[0].as<T>(), target, weight, losses, args.aux[0].as<double>());
  });
}
template <class T>
void indices_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::cross_entropy_grad(args.attributes_as<Attributes>().loss, row_gradient<T>(args), args.inputs[0].as<T>(),
                              args.inputs[1].as<std::int64_t>(), class_weight<T>(args), args.aux[0].as<double>(),
                              dx.as<T>(), dx.add);
}

template <class T>
void probabilities_forward(const ForwardArgs& args) {
  const auto& p = args.attributes_as<Attributes>().loss;
  reduce_rows<T>(args, double(p.rows()), [&](T* losses) {
    kernels::cross_entropy_probabilities(p, args.inputs[0].as<T>(), args.inputs[1].as<T>(), class_weight<T>(args),
                                         losses, args.aux[0].as<double>());
  });
}
template <class T>
void probabilities_backward(const BackwardArgs& args) {
  const GradientSlot &dx = args.input_gradients[0], &dq = args.input_gradients[1];
  kernels::cross_entropy_probabilities_grad(args.attributes_as<Attributes>().loss, row_gradient<T>(args),
                                            args.inputs[0].as<T>(), args.inputs[1].as<T>(), class_weight<T>(args),
                                            args.aux[0].as<double>(), dx.as<T>(), dx.add, dq.as<T>(), dq.add);
}

template <class T>
void nll_forward(const ForwardArgs& args) {
  const auto& p = args.attributes_as<Attributes>().loss;
  const auto* target = args.inputs[1].as<std::int64_t>();
  const T* weight = class_weight<T>(args);
  reduce_rows<T>(args, kernels::target_weight(p, target, weight),
                 [&](T* losses) { kernels::nll(p, args.inputs[0].as<T>(), target, weight, losses); });
}
template <class T>
void nll_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::nll_grad(args.attributes_as<Attributes>().loss, row_gradient<T>(args), args.inputs[1].as<std::int64_t>(),
                    class_weight<T>(args), dx.as<T>(), dx.add);
}

constexpr std::uint32_t kClassInputs = needs_input(0) | needs_input(1) | needs_input(2);

constexpr Op kIndices{.name = "cross_entropy",
                      .derivative = "dx = (softmax(x) - onehot(target)) dy / targets",
                      .forward = {indices_forward<float>, indices_forward<double>, nullptr},
                      .backward = {indices_backward<float>, indices_backward<double>, nullptr},
                      .needs = {kClassInputs}};
constexpr Op kProbabilities{.name = "cross_entropy",
                            .derivative = "dx = (softmax(x) - target) dy / rows",
                            .forward = {probabilities_forward<float>, probabilities_forward<double>, nullptr},
                            .backward = {probabilities_backward<float>, probabilities_backward<double>, nullptr},
                            .needs = {kClassInputs, kClassInputs}};
constexpr Op kNll{.name = "nll_loss",
                  .derivative = "dx = -onehot(target) dy / targets",
                  .forward = {nll_forward<float>, nll_forward<double>, nullptr},
                  .backward = {nll_backward<float>, nll_backward<double>, nullptr},
                  .needs = {needs_input(1) | needs_input(2)}};

// --- checks ---------------------------------------------------------------------------------------------------------

/// The extents of the scores around their classes, which lie in dimension 1, or 0 where there is no batch.
kernels::ClassLoss geometry(const char* where, const Shape& input) {
  if (input.rank() == 0)
    fail(ErrorKind::shape, where, ": no class dimension: expected [K], [N, K] or [N, K, d1, ...], got ", input);
  const int axis = input.rank() == 1 ? 0 : 1;
  if (input[axis] == 0) fail(ErrorKind::shape, where, ": no classes: expected >= 1, got 0 in ", input);
  return {
      .outer = axis == 1 ? input[0] : 1, .classes = input[axis], .inner = input.slice(axis + 1, input.rank()).numel()};
}

/// One target for each row of classes.
Shape row_shape(const Shape& input) {
  return input.rank() == 1 ? Shape() : input.slice(0, 1).concat(input.slice(2, input.rank()));
}

/// " in row 1", " at [0, 1]" where rows have several dimensions, "" for the only one.
std::string position(std::int64_t row, std::span<const std::int64_t> rows) {
  if (rows.empty()) return "";
  if (rows.size() == 1) return cat(" in row ", row);
  std::string text = "]";
  for (std::size_t d = rows.size(); d-- > 0;) {
    text = cat(d ? ", " : " at [", row % rows[d]) + text;
    row /= rows[d];
  }
  return text;
}

struct TargetCheck {
  const char* where;
  kernels::ClassLoss loss;
};

void check_targets(const ForwardArgs& args) {
  const auto& [where, p] = args.attributes_as<TargetCheck>();
  const auto* indices = args.inputs[0].as<std::int64_t>();
  const std::int64_t bad = kernels::find_bad_target(indices, p.rows(), p.classes, p.ignore_index);
  if (bad >= 0)
    fail(ErrorKind::shape, where, ": class index out of range: expected 0 to ", p.classes - 1, ", got ", indices[bad],
         position(bad, args.inputs[0].shape()));
}

void check_class_indices(const char* where, const Tensor& input, const Tensor& target, const kernels::ClassLoss& p) {
  const Shape rows = row_shape(input.shape());
  if (target.dtype() != DType::int64)
    fail(ErrorKind::type, where, ": class indices have the wrong element type: expected int64, got ", target.dtype(),
         "; convert with to()");
  if (!(target.shape() == rows))
    fail(ErrorKind::shape, where, ": class indices have the wrong shape for scores ", input.shape(), ": expected ",
         rows, ", got ", target.shape());
  detail::run_effect("check targets", check_targets, {target}, {}, TargetCheck{where, p});
}

void check_class_weight(const char* where, const std::vector<double>& weight, std::int64_t classes) {
  if (!weight.empty() && std::int64_t(weight.size()) != classes)
    fail(ErrorKind::config, where, ": weight must have one number for each class: expected ", classes, ", got ",
         weight.size());
}

Tensor run(const Op& op, const Tensor& input, const Tensor& target, const kernels::ClassLoss& loss, Reduction reduction,
           const std::vector<double>& weight) {
  check_class_weight(op.name, weight, loss.classes);
  const bool keep = reduction == Reduction::none;
  const Attributes attributes{loss, reduction};
  const Tensor numbers = empty({loss.rows() + 1}, DType::float64);
  const Tensor losses = empty({keep ? 0 : loss.rows()}, input.dtype());
  const Shape output = keep ? row_shape(input.shape()) : Shape();
  if (weight.empty()) return apply(op, {input, target}, output, input.dtype(), attributes, {numbers, losses});
  return apply(op, {input, target, weight_tensor(weight, input.dtype())}, output, input.dtype(), attributes,
               {numbers, losses});
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyLossOptions& options) {
  const char* where = kIndices.name;
  check_floating(where, input.dtype());
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) check_fields(where, options);
  kernels::ClassLoss loss = geometry(where, input.shape());
  loss.ignore_index = options.ignore_index;
  loss.label_smoothing = options.label_smoothing;
  const bool probabilities = is_floating(target.dtype()) && target.shape() == input.shape();
  if (!probabilities) check_class_indices(where, input, target, loss);
  return run(probabilities ? kProbabilities : kIndices, input, target, loss, options.reduction, options.weight);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossOptions& options) {
  check_floating(kNll.name, input.dtype());
  kernels::ClassLoss loss = geometry(kNll.name, input.shape());
  loss.ignore_index = options.ignore_index;
  check_class_indices(kNll.name, input, target, loss);
  return run(kNll, input, target, loss, options.reduction, options.weight);
}

}  // namespace functional

// --- losses ---------------------------------------------------------------------------------------------------------

CrossEntropyLoss::CrossEntropyLoss(Options options) : Layer(std::move(options)) {}
Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::cross_entropy(input, target, options_);
}

NLLLoss::NLLLoss(Options options) : Layer(std::move(options)) {}
Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) {
  return functional::nll_loss(input, target, options_);
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(CrossEntropyLossOptions& o, FieldVisitor& visit) {
  visit({"weight", "how much each class counts, one number a class; empty: all the same"}, o.weight);
  visit({"ignore_index", "a target of this value counts nothing"}, o.ignore_index);
  visit({"label_smoothing", "share of the target that is spread evenly over all classes", kProbability},
        o.label_smoothing);
  visit({"reduction", "the losses' mean or sum, or each of them"}, o.reduction);
}

void fields(NLLLossOptions& o, FieldVisitor& visit) {
  visit({"weight", "how much each class counts, one number a class; empty: all the same"}, o.weight);
  visit({"ignore_index", "a target of this value counts nothing"}, o.ignore_index);
  visit({"reduction", "the losses' mean or sum, or each of them"}, o.reduction);
}

}  // namespace taper::nn
