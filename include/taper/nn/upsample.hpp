#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// One number for all spatial dimensions or one for each, however many the input has; or nothing.
template <class T>
struct PerDimension {
  T values[3] = {};
  int count = 0;  ///< 0: not given; 1: the same for all

  PerDimension() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number> PerDimension(Number all) : values{T(all)}, count(1) {}
  /// Errors: `ErrorKind::config` unless there are one to three numbers.
  PerDimension(std::initializer_list<T> list);

  bool given() const { return count > 0; }
  T operator[](int i) const { return values[count == 1 ? 0 : i]; }
};

FieldType field_type(const PerDimension<std::int64_t>*);
FieldType field_type(const PerDimension<double>*);
template <class T>
[[gnu::visibility("default")]] Value to_value(const PerDimension<T>& value);
template <class T>
[[gnu::visibility("default")]] std::string from_value(const Value& from, PerDimension<T>& to);

enum class UpsampleMode { nearest, linear, bilinear, trilinear, nearest_exact, bicubic, area };
/// PyTorch's names: "nearest", ..., "nearest-exact", "bicubic", "area".
std::span<const char* const> names_of(UpsampleMode);

struct UpsampleOptions {
  static constexpr const char* kType = "Upsample";
  PerDimension<std::int64_t> size = {};    ///< extents of the output; this or `scale_factor`
  PerDimension<double> scale_factor = {};  ///< how often an extent of the input goes into the output
  UpsampleMode mode = UpsampleMode::nearest;
  std::optional<bool> align_corners = {};  ///< of interpolating modes: whether the outer ones keep their places
  /// Whether the places are computed from the sizes, which are whole numbers, instead of from `scale_factor`.
  std::optional<bool> recompute_scale_factor = {};
};

void fields(UpsampleOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// Resizes the spatial dimensions, one to three by the input's rank: [N, C, L] -> [N, C, L'],
/// [N, C, H, W] -> [N, C, H', W'] and so on with L' = `size`, or floor(L scale_factor). Output i lies at
/// (i + 1/2) s - 1/2 in the input, s being 1 / scale_factor or, of a size, L / L'; with `align_corners` at
/// i (L - 1) / (L' - 1). The linear modes (the name says for how many dimensions) weigh the two elements around it,
/// "bicubic" in two dimensions the four, by Keys's cubic with a = -3/4; "nearest" takes element floor(i s),
/// "nearest-exact" floor((i + 1/2) s). "area" gives the means of `adaptive_avg_pool1d` to `3d` with L' as their size,
/// whatever `recompute_scale_factor` says. Source: PyTorch, interpolate and Upsample.
/// Differs: "nearest" of a size is exact for every size and the same for both types, and its gradient goes where the
/// value came from. Errors: `ErrorKind::config` (options), `ErrorKind::shape`, `ErrorKind::type`.
Tensor interpolate(const Tensor& input, const UpsampleOptions& options);

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::interpolate`.
class Upsample : public Layer<UpsampleOptions> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid.
  explicit Upsample(UpsampleOptions options);
  Tensor forward(const Tensor& x) override { return functional::interpolate(x, options_); }
  /// Writes out `size` or `scale_factor` for each dimension, so that the layer refuses inputs of another rank.
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

}  // namespace taper::nn

#pragma GCC visibility pop
