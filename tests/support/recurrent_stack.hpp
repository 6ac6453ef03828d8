#pragma once

#include <vector>

#include "taper/creation.hpp"
#include "taper/nn/rnn.hpp"

// Weights of recurrent layers, for the tests of their functions.

namespace taper::test {

inline Tensor leaf(const Shape& shape) { return uniform(shape, -1, 1, DType::float64).requires_grad_(); }

/// Weights of one layer and direction, float64 leaves.
inline nn::RecurrentWeights weights_of(std::int64_t gates, std::int64_t in, std::int64_t hidden, bool bias = true) {
  const std::int64_t rows = gates * hidden;
  nn::RecurrentWeights w{leaf({rows, in}), leaf({rows, hidden})};
  if (bias) w.bias_ih = leaf({rows}), w.bias_hh = leaf({rows});
  return w;
}

/// `layers` layers over `in` features, in two directions if `directions` is 2.
inline std::vector<nn::RecurrentWeights> stack_of(std::int64_t gates, std::int64_t in, std::int64_t hidden, int layers,
                                                  int directions, bool bias = true) {
  std::vector<nn::RecurrentWeights> all;
  for (int i = 0; i < layers * directions; ++i)
    all.push_back(weights_of(gates, i < directions ? in : directions * hidden, hidden, bias));
  return all;
}

/// As `stack_of`, of an LSTM with a projection.
inline std::vector<nn::RecurrentWeights> projected_stack(std::int64_t in, std::int64_t hidden, std::int64_t projection,
                                                         int layers, int directions, bool bias = true) {
  std::vector<nn::RecurrentWeights> all;
  for (int i = 0; i < layers * directions; ++i) {
    all.push_back(weights_of(4, i < directions ? in : directions * projection, hidden, bias));
    all.back().weight_hh = leaf({4 * hidden, projection});
    all.back().weight_hr = leaf({projection, hidden});
  }
  return all;
}

/// All leaves in one list, in the order of the layers.
inline std::vector<Tensor> leaves_of(const std::vector<nn::RecurrentWeights>& weights) {
  std::vector<Tensor> leaves;
  for (const auto& w : weights) {
    leaves.insert(leaves.end(), {w.weight_ih, w.weight_hh});
    if (w.bias_ih.defined()) leaves.insert(leaves.end(), {w.bias_ih, w.bias_hh});
    if (w.weight_hr.defined()) leaves.push_back(w.weight_hr);
  }
  return leaves;
}

}  // namespace taper::test
