#pragma once

#include "taper/nn/linear.hpp"
#include "taper/nn/registry.hpp"

#pragma GCC visibility push(default)

// Attention. Source: PyTorch, MultiheadAttention and scaled_dot_product_attention; Vaswani et al., "Attention is all
// you need" (2017).
namespace taper::nn {

struct AttentionSettings {
  double dropout_p = 0;              ///< of the weights; always applied when it is not 0
  bool is_causal = false;            ///< query i sees the keys 0 to i
  std::optional<double> scale = {};  ///< of query times key; left out: 1 / sqrt(E)
};

namespace functional {

/// softmax(scale * query key^T + mask) value: [..., L, E], [..., S, E], [..., S, V] -> [..., L, V]; the leading
/// dimensions repeat as NumPy's do.
/// `attn_mask` repeats to [..., L, S]: floating, it is added; int64, a query sees the keys where it is not 0. A query
/// that sees no key at all gets zeros. Errors: `ErrorKind::shape`, `ErrorKind::type`, `ErrorKind::config` (a mask
/// beside `is_causal`; dropout_p outside [0, 1]).
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = Tensor(), const AttentionSettings& settings = {});

}  // namespace functional

struct MultiheadAttentionOptions {
  static constexpr const char* kType = "MultiheadAttention";
  std::optional<std::int64_t> embed_dim = {};  ///< left out in JSON: the query's last extent
  std::int64_t num_heads = -1;
  double dropout = 0;  ///< of the attention weights, in training
  bool bias = true;
  bool add_bias_kv = false;
  bool add_zero_attn = false;
  std::optional<std::int64_t> kdim = {};  ///< left out: embed_dim
  std::optional<std::int64_t> vdim = {};
  bool batch_first = false;
  bool is_causal = false;  ///< an argument of `forward` in PyTorch
};

void fields(MultiheadAttentionOptions& options, FieldVisitor& visitor);

/// What a query may not see, and what is given back.
struct AttentionArguments {
  /// [N, S], unbatched [S]: floating, it is added to the scores; int64, the keys where it is not 0 are not seen.
  Tensor key_padding_mask = {};
  bool need_weights = true;
  /// [L, S] or [N * num_heads, L, S], in the same way.
  Tensor attn_mask = {};
  bool average_attn_weights = true;
};

struct AttentionResult {
  Tensor output;
  Tensor weights;  ///< [N, L, S], or [N, num_heads, L, S] where they are not averaged; undefined unless asked for
};

/// Several attentions side by side over parts of a projection, projected once more: query [N, L, embed_dim], key
/// [N, S, kdim], value [N, S, vdim] -> [N, L, embed_dim] with batch_first, else [L, N, ..]; unbatched [L, ..].
///
/// Parameters have PyTorch's names and are float32; the projections start as Xavier's uniform numbers, the biases as 0.
/// A query that sees no key gives NaN where the weights are asked for, else what zero weights give, as in PyTorch.
/// Differs: PyTorch takes `is_causal` as a hint about `attn_mask`; here it is a mask of its own, joined with the
/// others.
class MultiheadAttention : public Layer<MultiheadAttentionOptions> {
 public:
  static constexpr Elements kReads[] = {Elements::floating, Elements::floating, Elements::floating, Elements::any};

  /// Errors: `ErrorKind::config` for options out of range, without `embed_dim`, or heads that do not divide it.
  explicit MultiheadAttention(MultiheadAttentionOptions options);
  /// Self-attention, without the weights.
  Tensor forward(const Tensor& x) override;
  /// The query alone for self-attention; or query, key and value, then key_padding_mask and attn_mask as far as given.
  Tensor forward_all(std::span<const Tensor> inputs) override;
  /// As `forward_all`, then the averaged weights.
  std::vector<Tensor> forward_outputs(std::span<const Tensor> inputs) override;
  std::vector<std::string> further_outputs() const override { return further_outputs(options_); }
  /// Errors: `ErrorKind::shape`, `ErrorKind::type`.
  AttentionResult attend(const Tensor& query, const Tensor& key, const Tensor& value,
                         const AttentionArguments& arguments = {});

  static Shape infer(Options& options, std::span<const Shape> inputs);
  static std::vector<std::string> further_outputs(const Options& options);
  static std::vector<Outline> infer_further(const Options& options, std::span<const Shape> inputs);

  Tensor in_proj_weight;  ///< [3 embed_dim, embed_dim]; undefined with another kdim or vdim
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;  ///< [embed_dim, embed_dim], [.., kdim], [.., vdim] in its place
  Tensor in_proj_bias;                                 ///< [3 embed_dim], or undefined
  Tensor bias_k, bias_v;                               ///< [1, 1, embed_dim] with add_bias_kv, else undefined
  Linear out_proj;
};

}  // namespace taper::nn

#pragma GCC visibility pop
