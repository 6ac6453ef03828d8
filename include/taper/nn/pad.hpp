#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/sizes.hpp"
#include "taper/ops.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// What to pad N spatial dimensions with: zeros, or the input itself by `Mode`.
template <PadMode Mode, int N>
struct PadOptions {
  static constexpr const char* kTypes[4][3] = {{"ZeroPad1d", "ZeroPad2d", "ZeroPad3d"},
                                               {"ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"},
                                               {"ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"},
                                               {"CircularPad1d", "CircularPad2d", "CircularPad3d"}};
  static constexpr const char* kType = kTypes[int(Mode)][N - 1];
  /// One number for all sides, or {left, right} of the last dimension, then of the one before, ...
  Sizes<2 * N> padding = 0;
};

template <int N>
struct ConstantPadOptions {
  static constexpr const char* kTypes[3] = {"ConstantPad1d", "ConstantPad2d", "ConstantPad3d"};
  static constexpr const char* kType = kTypes[N - 1];
  Sizes<2 * N> padding = 0;  ///< as in `PadOptions`
  double value = 0;
};

template <PadMode Mode, int N>
[[gnu::visibility("default")]] void fields(PadOptions<Mode, N>& options, FieldVisitor& visitor);
template <int N>
[[gnu::visibility("default")]] void fields(ConstantPadOptions<N>& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

using taper::pad;

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::pad` to the last N dimensions: [N, C, L] -> [N, C, left + L + right], or without N, and so on
/// for every padded dimension. Negative padding crops. Padding with a constant takes inputs of more dimensions too.
/// Source: PyTorch, ConstantPad1d to CircularPad3d. Differs: circular padding beside a crop repeats what is left of
/// the input, once at most, where PyTorch may give memory that nobody wrote. Errors: `ErrorKind::shape` for other
/// numbers of dimensions, no channels, and where `pad` refuses the amounts: reflection must stay below the extent,
/// circular padding must not be above it.
template <class O, PadMode Mode, int N>
class Pad : public Layer<O> {
 public:
  explicit Pad(O options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(O& options, std::span<const Shape> inputs);
};

template <int N>
using ConstantPad = Pad<ConstantPadOptions<N>, PadMode::zeros, N>;
template <PadMode Mode, int N>
using PadBy = Pad<PadOptions<Mode, N>, Mode, N>;

/// `value` all around.
using ConstantPad1d = ConstantPad<1>;
using ConstantPad2d = ConstantPad<2>;
using ConstantPad3d = ConstantPad<3>;
/// Zeros all around.
using ZeroPad1d = PadBy<PadMode::zeros, 1>;
using ZeroPad2d = PadBy<PadMode::zeros, 2>;
using ZeroPad3d = PadBy<PadMode::zeros, 3>;
/// The input mirrored at its first and last element, which are not repeated: 1 2 3 -> 3 2 1 2 3 2 1.
using ReflectionPad1d = PadBy<PadMode::reflect, 1>;
using ReflectionPad2d = PadBy<PadMode::reflect, 2>;
using ReflectionPad3d = PadBy<PadMode::reflect, 3>;
/// The nearest element of the input: 1 2 3 -> 1 1 1 2 3 3 3.
using ReplicationPad1d = PadBy<PadMode::replicate, 1>;
using ReplicationPad2d = PadBy<PadMode::replicate, 2>;
using ReplicationPad3d = PadBy<PadMode::replicate, 3>;
/// The input again: 1 2 3 -> 2 3 1 2 3 1 2.
using CircularPad1d = PadBy<PadMode::circular, 1>;
using CircularPad2d = PadBy<PadMode::circular, 2>;
using CircularPad3d = PadBy<PadMode::circular, 3>;

}  // namespace taper::nn

#pragma GCC visibility pop
