#pragma once

#include "taper/nn/attention.hpp"

// What scaled_dot_product_attention and MultiheadAttention share.
namespace taper::nn {

/// What is added to the scores: 0 where query i sees key j, that is j <= i, else -inf.
Tensor causal_mask(std::int64_t queries, std::int64_t keys, DType dtype);

/// A mask as what is added to the scores. Of an int64 one, `seen` says whether 1 means that a key is seen.
Tensor added_mask(const Tensor& mask, bool seen, DType dtype);

/// Refuses masks that are neither int64 nor of the query's type. Errors: `ErrorKind::type`.
void check_mask_type(const char* where, const char* name, const Tensor& mask, DType dtype);

/// `where: what: expected E, got G`, of kind shape.
[[noreturn]] void fail_extent(const char* where, const char* what, const std::string& expected, const Shape& got);

/// scale query key^T + mask, the mask being undefined or what is added.
Tensor attention_scores(const Tensor& query, const Tensor& key, double scale, const Tensor& mask);

/// Softmax over the last dimension, in which a row of nothing but -inf gives zeros.
Tensor masked_softmax(const Tensor& scores);

/// 1 / sqrt(size).
double default_scale(std::int64_t size);

}  // namespace taper::nn
