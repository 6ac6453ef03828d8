#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// How a table is read; its sizes are the weight's.
struct EmbeddingFuncOptions {
  std::optional<std::int64_t> padding_idx = {};  ///< a row that gets no gradient; counted from the back when negative
  std::optional<double> max_norm = {};  ///< rows that are read and longer are first scaled down to it, in place
  double norm_type = 2;                 ///< p of the p-norm that `max_norm` bounds
  bool scale_grad_by_freq = false;      ///< divides a row's gradient by how often the input names it
};

/// Differs: PyTorch's `sparse` is not offered, and a negative `max_norm` is refused.
struct EmbeddingOptions {
  static constexpr const char* kType = "Embedding";
  std::int64_t num_embeddings = 0;
  std::int64_t embedding_dim = 0;
  std::optional<std::int64_t> padding_idx = {};
  std::optional<double> max_norm = {};
  double norm_type = 2;
  bool scale_grad_by_freq = false;
};

void fields(EmbeddingOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// The rows of `weight` [num_embeddings, embedding_dim] that `input`, int64 of any shape, names:
/// [*] -> [*, embedding_dim]. The gradient of a row named several times is their sum. With `max_norm`, every row that
/// is named and whose p-norm is larger is first multiplied by max_norm / (norm + 1e-7) in `weight` itself: not
/// recorded, the version counter grows. Source: PyTorch, Embedding. Errors: `ErrorKind::shape` for an index outside the
/// table, with its value and its place; `ErrorKind::type`; `ErrorKind::config` for `padding_idx` and `max_norm`.
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::embedding` with a table of its own: float32 and normal with mean 0 and deviation 1 at first,
/// the row `padding_idx` 0. With `max_norm` a call changes the table, in evaluation too.
class Embedding : public Layer<EmbeddingOptions> {
 public:
  /// Errors: `ErrorKind::config` for options out of range.
  explicit Embedding(EmbeddingOptions options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);
  static constexpr Elements kReads[] = {Elements::int64};
  static constexpr std::int64_t kExampleIndices = 3;

  Tensor weight;  ///< [num_embeddings, embedding_dim]
};

}  // namespace taper::nn

#pragma GCC visibility pop
