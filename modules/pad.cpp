#include "taper/nn/pad.hpp"

#include "base/fail.hpp"
#include "catalogue.hpp"
#include "ops/shape_rules.hpp"
#include "spatial.hpp"

namespace taper::nn {

namespace {

template <class Options>
double value_of(const Options& options) {
  if constexpr (requires { options.value; })
    return options.value;
  else
    return 0;
}

}  // namespace

// --- layers ---------------------------------------------------------------------------------------------------------

template <class O, PadMode Mode, int N>
Pad<O, Mode, N>::Pad(O options) : Layer<O>(options) {}

template <class O, PadMode Mode, int N>
Tensor Pad<O, Mode, N>::forward(const Tensor& x) {
  const O& options = this->options_;
  if constexpr (Mode != PadMode::zeros) check_spatial_input(O::kType, x.shape(), N);
  return pad(x, options.padding.values, Mode, value_of(options));
}

template <class O, PadMode Mode, int N>
Shape Pad<O, Mode, N>::infer(O& options, std::span<const Shape> inputs) {
  const Shape& input = inputs[0];
  const bool fits = Mode == PadMode::zeros ? input.rank() > N : input.rank() == N + 2;
  if (!fits)
    fail(ErrorKind::shape, O::kType, ": wrong number of dimensions: expected ",
         Mode == PadMode::zeros ? cat("at least ", N + 1) : cat(N + 2), "-D with the batch, got ", input.rank(), "-D ",
         batched_text(input));
  return padded_shape("pad", input, options.padding.values, Mode);
}

// --- fields ---------------------------------------------------------------------------------------------------------

namespace {

template <class Options>
void padding_field(Options& o, FieldVisitor& visit) {
  visit({"padding", "one number for all sides, or two for each dimension, the last dimension first", kAny, true},
        o.padding);
}

}  // namespace

template <PadMode Mode, int N>
void fields(PadOptions<Mode, N>& o, FieldVisitor& visit) {
  padding_field(o, visit);
}

template <int N>
void fields(ConstantPadOptions<N>& o, FieldVisitor& visit) {
  padding_field(o, visit);
  visit({"value", "what the padding holds", kAny, true}, o.value);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

namespace {

struct Example {
  const char* law;
  Shape input;
  const char* padding;
};

/// An example of a layer over `N` dimensions, each side with another amount.
template <int N>
Example example() {
  if (N == 1) return {"[N, C, L] -> [N, C, L'].", {2, 3, 5}, "[1, 2]"};
  if (N == 2) return {"[N, C, H, W] -> [N, C, H', W'].", {2, 3, 5, 7}, "[1, 2, 3, 0]"};
  return {"[N, C, D, H, W] -> [N, C, D', H', W'].", {2, 1, 3, 4, 5}, "[1, 2, 3, 0, 1, 2]"};
}

void add_one(std::vector<LayerType>& types, const LayerClass& layer, const Example& example, const char* summary,
             const char* options = "") {
  add_layer(types, layer, cat(summary, ": ", example.law).c_str(),
            cat("{\"padding\": ", example.padding, options, "}").c_str(), {example.input});
}

template <int N>
void add_layers(std::vector<LayerType>& types) {
  const Example e = example<N>();
  add_one(types, kLayerClass<ConstantPad<N>>, e, "Puts one number all around", ", \"value\": 0.5");
  add_one(types, kLayerClass<PadBy<PadMode::zeros, N>>, e, "Puts zeros all around");
  add_one(types, kLayerClass<PadBy<PadMode::reflect, N>>, e, "Mirrors the input at its edges");
  add_one(types, kLayerClass<PadBy<PadMode::replicate, N>>, e, "Repeats the edges of the input");
  add_one(types, kLayerClass<PadBy<PadMode::circular, N>>, e, "Repeats the input all around");
}

}  // namespace

void add_pad_layers(std::vector<LayerType>& types) {
  add_layers<1>(types);
  add_layers<2>(types);
  add_layers<3>(types);
}

#define TAPER_INSTANTIATE_PAD_BY(mode, N)           \
  template class Pad<PadOptions<mode, N>, mode, N>; \
  template void fields(PadOptions<mode, N>&, FieldVisitor&)
#define TAPER_INSTANTIATE_PADS(N)                               \
  template class Pad<ConstantPadOptions<N>, PadMode::zeros, N>; \
  template void fields(ConstantPadOptions<N>&, FieldVisitor&);  \
  TAPER_INSTANTIATE_PAD_BY(PadMode::zeros, N);                  \
  TAPER_INSTANTIATE_PAD_BY(PadMode::reflect, N);                \
  TAPER_INSTANTIATE_PAD_BY(PadMode::replicate, N);              \
  TAPER_INSTANTIATE_PAD_BY(PadMode::circular, N)
TAPER_INSTANTIATE_PADS(1);
TAPER_INSTANTIATE_PADS(2);
TAPER_INSTANTIATE_PADS(3);
#undef TAPER_INSTANTIATE_PADS
#undef TAPER_INSTANTIATE_PAD_BY

}  // namespace taper::nn
