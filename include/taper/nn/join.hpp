#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

// Layers of Taper's own that join several results of a `Graph`; in PyTorch they are written out in `forward`.
namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

struct AddOptions {
  static constexpr const char* kType = "Add";
};
struct MultiplyOptions {
  static constexpr const char* kType = "Multiply";
};
struct ConcatOptions {
  static constexpr const char* kType = "Concat";
  std::int64_t dim = 1;
};

void fields(AddOptions& options, FieldVisitor& visitor);
void fields(MultiplyOptions& options, FieldVisitor& visitor);
void fields(ConcatOptions& options, FieldVisitor& visitor);

// --- layers ---------------------------------------------------------------------------------------------------------

/// What the joins share: two inputs at least.
template <class O>
class Join : public Layer<O> {
 public:
  explicit Join(O options = {}) : Layer<O>(options) {}
  /// Errors: `ErrorKind::config` for fewer than two inputs; `ErrorKind::shape` when they do not fit.
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor forward(const Tensor& x) override { return forward_all({&x, 1}); }
  static Shape infer(O& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {std::is_same_v<O, ConcatOptions> ? Elements::any : Elements::floating};
};

/// The sum: [*], [*], ... -> [*]. Inputs have as many dimensions; an extent of 1 repeats.
using Add = Join<AddOptions>;
/// The product, by the same rule.
using Multiply = Join<MultiplyOptions>;
/// Joined along `dim`: [N, C0, L], [N, C1, L], ... -> [N, C0 + C1 + ..., L] by default.
using Concat = Join<ConcatOptions>;

extern template class Join<AddOptions>;
extern template class Join<MultiplyOptions>;
extern template class Join<ConcatOptions>;

}  // namespace taper::nn

#pragma GCC visibility pop
