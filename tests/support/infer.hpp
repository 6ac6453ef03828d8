#pragma once

#include <vector>

#include "taper/nn/registry.hpp"

namespace taper::test {

/// The output's shape that the layer of these options infers for its inputs' shapes.
template <class Options>
Shape infer_all(Options options, const std::vector<Shape>& inputs) {
  return nn::find_layer_type(Options::kType)->infer(&options, inputs);
}

/// Of one input.
template <class Options>
Shape infer(Options options, const Shape& input) {
  return infer_all(options, {input});
}

}  // namespace taper::test
