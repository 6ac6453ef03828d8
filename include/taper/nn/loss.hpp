#pragma once

#include <string>
#include <vector>

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

/// Losses: one fused operation each, from the scores to the number, with its gradient written directly.
namespace taper::nn {

/// What becomes of the losses of single targets: kept, their mean, or their sum.
enum class Reduction { none, mean, sum };
std::span<const char* const> names_of(Reduction);

// --- options --------------------------------------------------------------------------------------------------------

struct CrossEntropyLossOptions {
  static constexpr const char* kType = "CrossEntropyLoss";
  std::vector<double> weight = {};  ///< one number a class; empty: all ones
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;
};

struct NLLLossOptions {
  static constexpr const char* kType = "NLLLoss";
  std::vector<double> weight = {};  ///< one number a class; empty: all ones
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};

struct MSELossOptions {
  static constexpr const char* kType = "MSELoss";
  Reduction reduction = Reduction::mean;
};

struct L1LossOptions {
  static constexpr const char* kType = "L1Loss";
  Reduction reduction = Reduction::mean;
};

struct SmoothL1LossOptions {
  static constexpr const char* kType = "SmoothL1Loss";
  double beta = 1;
  Reduction reduction = Reduction::mean;
};

struct HuberLossOptions {
  static constexpr const char* kType = "HuberLoss";
  double delta = 1;
  Reduction reduction = Reduction::mean;
};

struct BCEWithLogitsLossOptions {
  static constexpr const char* kType = "BCEWithLogitsLoss";
  std::vector<double> weight = {};      ///< one number, or one for each position of the last dimension
  std::vector<double> pos_weight = {};  ///< likewise: how much more a target of 1 counts
  Reduction reduction = Reduction::mean;
};

void fields(CrossEntropyLossOptions& options, FieldVisitor& visitor);
void fields(NLLLossOptions& options, FieldVisitor& visitor);
void fields(MSELossOptions& options, FieldVisitor& visitor);
void fields(L1LossOptions& options, FieldVisitor& visitor);
void fields(SmoothL1LossOptions& options, FieldVisitor& visitor);
void fields(HuberLossOptions& options, FieldVisitor& visitor);
void fields(BCEWithLogitsLossOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// The cross entropy between softmax(input) along the classes and the targets. With K classes, `input` is [N, K],
/// [N, K, d1, ...] or [K], and `target` either class indices, int64 [N], [N, d1, ...] or [], or class probabilities of
/// the input's shape and type. The loss is a scalar, or with `Reduction::none` has the shape of the class indices.
/// A mean divides by the summed class weights of the targets that are not ignored (by the number of rows, for
/// probabilities). Label smoothing s replaces the target q by (1 - s) q + s / K.
/// Source: PyTorch, CrossEntropyLoss. Differs: a mean over no targets is 0 with zero gradients, not NaN. Errors:
/// `ErrorKind::shape` (shapes, class index out of range), `ErrorKind::type`, `ErrorKind::config`.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyLossOptions& options = {});

/// The negative log likelihood -w_t x_t of class indices t, where `input` holds log-probabilities. Shapes, ignored
/// targets and means as `cross_entropy`. Source: PyTorch, NLLLoss. Differs: as `cross_entropy`.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossOptions& options = {});

/// (input - target)^2. A scalar, or the input's shape with `Reduction::none`. Source: PyTorch, MSELoss.
/// Differs (as the next four): `input` and `target` must have the same shape, where PyTorch warns and broadcasts; a
/// mean over no elements is 0, not NaN. Errors: `ErrorKind::shape`, `ErrorKind::type`.
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossOptions& options = {});

/// |input - target|. Source: PyTorch, L1Loss.
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossOptions& options = {});

/// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = input - target. Source: PyTorch, SmoothL1Loss.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& options = {});

/// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = input - target. Source: PyTorch, HuberLoss.
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& options = {});

/// The binary cross entropy between sigmoid(input) and targets in [0, 1], stable for any input.
/// Source: PyTorch, BCEWithLogitsLoss. Differs further: the weights have one element or the last extent.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BCEWithLogitsLossOptions& options = {});

}  // namespace functional

// --- losses ---------------------------------------------------------------------------------------------------------

/// A module of two inputs, what a model says and what it should say.
class Loss : public Module {
 public:
  using Module::forward;
  virtual Tensor forward(const Tensor& input, const Tensor& target) = 0;
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor operator()(const Tensor& input, const Tensor& target) { return forward(input, target); }
};

/// Applies `functional::cross_entropy`.
class CrossEntropyLoss : public Layer<CrossEntropyLossOptions, Loss> {
 public:
  explicit CrossEntropyLoss(Options options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

/// Applies `functional::nll_loss`.
class NLLLoss : public Layer<NLLLossOptions, Loss> {
 public:
  explicit NLLLoss(Options options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

/// Applies `functional::mse_loss`.
class MSELoss : public Layer<MSELossOptions, Loss> {
 public:
  explicit MSELoss(Options options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

/// Applies `functional::l1_loss`.
class L1Loss : public Layer<L1LossOptions, Loss> {
 public:
  explicit L1Loss(Options options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

/// Applies `functional::smooth_l1_loss`.
class SmoothL1Loss : public Layer<SmoothL1LossOptions, Loss> {
 public:
  explicit SmoothL1Loss(Options options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

/// Applies `functional::huber_loss`.
class HuberLoss : public Layer<HuberLossOptions, Loss> {
 public:
  explicit HuberLoss(Options options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

/// Applies `functional::binary_cross_entropy_with_logits`.
class BCEWithLogitsLoss : public Layer<BCEWithLogitsLossOptions, Loss> {
 public:
  explicit BCEWithLogitsLoss(Options options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

// --- catalogue ------------------------------------------------------------------------------------------------------

/// A loss as JSON and the tests of every loss know it.
struct LossType {
  std::string name;            ///< the class name and JSON "type"
  std::string summary;         ///< one sentence
  bool takes_classes = false;  ///< targets may be class indices; otherwise they have the input's shape

  Shared<void> (*new_options)() = nullptr;  ///< with all defaults
  void (*visit)(void* options, FieldVisitor& visitor) = nullptr;
  Shared<Loss> (*make)(const void* options) = nullptr;
};

/// Every loss that JSON knows, in the order of the documentation.
const std::vector<LossType>& loss_types();
/// Null when there is none of that name.
const LossType* find_loss_type(const std::string& name);

}  // namespace taper::nn

#pragma GCC visibility pop
