#pragma once

#include "taper/nn/module.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

struct FlattenOptions {
  static constexpr const char* kType = "Flatten";
  std::int64_t start_dim = 1;
  std::int64_t end_dim = -1;
};
struct SqueezeOptions {
  static constexpr const char* kType = "Squeeze";
  std::int64_t dim = -1;
};
struct IdentityOptions {
  static constexpr const char* kType = "Identity";
};

void fields(FlattenOptions& options, FieldVisitor& visitor);
void fields(SqueezeOptions& options, FieldVisitor& visitor);
void fields(IdentityOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

using taper::flatten;
using taper::squeeze;

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Joins the dimensions from `start_dim` to `end_dim` into one: [N, C, L] -> [N, C L] by default.
class Flatten : public Layer<FlattenOptions> {
 public:
  explicit Flatten(FlattenOptions options = {});
  /// Errors: `ErrorKind::shape` when there are no such dimensions.
  Tensor forward(const Tensor& x) override { return flatten(x, options_.start_dim, options_.end_dim); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {Elements::any};
};

/// Removes dimension `dim` when its extent is 1, else changes nothing: [N, C, 1] -> [N, C] by default. A layer of
/// Taper's own, for what PyTorch models write as `x.squeeze(dim)`.
class Squeeze : public Layer<SqueezeOptions> {
 public:
  explicit Squeeze(SqueezeOptions options = {});
  /// Errors: `ErrorKind::shape` when there is no such dimension.
  Tensor forward(const Tensor& x) override { return squeeze(x, options_.dim); }
  /// Errors: also when `dim` is the batch, whose extent a model must not depend on.
  static Shape infer(Options& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {Elements::any};
};

/// Gives back its input.
class Identity : public Layer<IdentityOptions> {
 public:
  explicit Identity(IdentityOptions options = {});
  Tensor forward(const Tensor& x) override { return x; }
  static Shape infer(Options&, std::span<const Shape> inputs) { return inputs[0]; }
  static constexpr Elements kReads[] = {Elements::any};
};

}  // namespace taper::nn
