#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/sizes.hpp"
#include "taper/ops.hpp"

#pragma GCC visibility push(default)

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
struct UnsqueezeOptions {
  static constexpr const char* kType = "Unsqueeze";
  std::int64_t dim = -1;
};
struct SelectOptions {
  static constexpr const char* kType = "Select";
  std::int64_t dim = 0;
  std::int64_t index = 0;  ///< from the back when negative
};
struct TransposeOptions {
  static constexpr const char* kType = "Transpose";
  std::int64_t dim0 = 0;
  std::int64_t dim1 = 0;
};
struct PermuteOptions {
  static constexpr const char* kType = "Permute";
  Extents dims = {};
};
struct UnflattenOptions {
  static constexpr const char* kType = "Unflatten";
  std::int64_t dim = 1;
  Extents unflattened_size = {};  ///< one of them may be -1: what the others leave
};
struct IdentityOptions {
  static constexpr const char* kType = "Identity";
};

void fields(FlattenOptions& options, FieldVisitor& visitor);
void fields(SqueezeOptions& options, FieldVisitor& visitor);
void fields(UnsqueezeOptions& options, FieldVisitor& visitor);
void fields(SelectOptions& options, FieldVisitor& visitor);
void fields(TransposeOptions& options, FieldVisitor& visitor);
void fields(PermuteOptions& options, FieldVisitor& visitor);
void fields(UnflattenOptions& options, FieldVisitor& visitor);
void fields(IdentityOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

using taper::flatten;
using taper::permute;
using taper::select;
using taper::squeeze;
using taper::transpose;
using taper::unsqueeze;

/// One dimension as several whose product it is, one of them -1 for what the others leave:
/// [N, C L] -> [N, C, L]. Source: PyTorch, Unflatten. Errors: `ErrorKind::shape`.
Tensor unflatten(const Tensor& input, std::int64_t dim, const Extents& sizes);

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

/// Inserts a dimension of extent 1 before dimension `dim` of the result: [N, C] -> [N, C, 1] by default. This and the
/// following layers are Taper's own, for what PyTorch models write as `x.unsqueeze(dim)` and so on; their dimensions
/// count the batch, and in a model none of them may be it.
class Unsqueeze : public Layer<UnsqueezeOptions> {
 public:
  explicit Unsqueeze(UnsqueezeOptions options = {});
  /// Errors: `ErrorKind::shape` when there is no such place.
  Tensor forward(const Tensor& x) override { return unsqueeze(x, options_.dim); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {Elements::any};
};

/// One entry along a dimension, which goes: [N, L, C] -> [N, C] for dim 1, as the last step of a sequence.
class Select : public Layer<SelectOptions> {
 public:
  explicit Select(SelectOptions options);
  /// Errors: `ErrorKind::shape` when there is no such dimension or entry.
  Tensor forward(const Tensor& x) override { return select(x, options_.dim, options_.index); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {Elements::any};
};

/// Two dimensions change places: [N, C, L] -> [N, L, C] for 1 and 2.
class Transpose : public Layer<TransposeOptions> {
 public:
  explicit Transpose(TransposeOptions options);
  /// Errors: `ErrorKind::shape` when there are no such dimensions.
  Tensor forward(const Tensor& x) override { return transpose(x, options_.dim0, options_.dim1); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {Elements::any};
};

/// The dimensions in another order, `dims` naming each once: [N, H, W, C] -> [N, C, H, W] for 0, 3, 1, 2.
class Permute : public Layer<PermuteOptions> {
 public:
  explicit Permute(PermuteOptions options);
  /// Errors: `ErrorKind::shape` for another number of dimensions or one named twice.
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {Elements::any};
};

/// Applies `functional::unflatten`. As in PyTorch.
class Unflatten : public Layer<UnflattenOptions> {
 public:
  /// Errors: `ErrorKind::config` for sizes below -1, or -1 more than once.
  explicit Unflatten(UnflattenOptions options);
  Tensor forward(const Tensor& x) override { return functional::unflatten(x, options_.dim, options_.unflattened_size); }
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

#pragma GCC visibility pop
