#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/recurrent.hpp"

/// Recurrent layers by their equations, one number at a time, in double.
namespace taper::test {

struct NaiveRecurrent {
  kernels::RecurrentParams p;
  std::vector<double> x, w_ih, w_hh, b_ih, b_hh, h0, c0;  ///< biases may be empty
  std::vector<double> w_hr = {};

  std::int64_t row(std::int64_t t, std::int64_t n) const { return p.batch_first ? n * p.steps + t : t * p.batch + n; }
};

struct NaiveStates {
  std::vector<double> y, c_n;
};

inline double naive_sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

/// W v + b in row `r` of a matrix with v.size() columns.
inline double naive_affine(const std::vector<double>& w, const std::vector<double>& b, std::int64_t r,
                           const std::vector<double>& v) {
  double sum = b.empty() ? 0 : b[std::size_t(r)];
  for (std::size_t j = 0; j < v.size(); ++j) sum += w[std::size_t(r) * v.size() + j] * v[j];
  return sum;
}

/// The states of one sample after one step.
inline void naive_step(const NaiveRecurrent& s, const std::vector<double>& x, std::vector<double>& h,
                       std::vector<double>& c) {
  using kernels::RecurrentCell;
  const std::int64_t size = s.p.hidden_size;
  const std::vector<double> h_before = h;
  h.resize(std::size_t(size));
  for (std::int64_t j = 0; j < size; ++j) {
    const auto from_x = [&](std::int64_t gate) { return naive_affine(s.w_ih, s.b_ih, gate * size + j, x); };
    const auto from_h = [&](std::int64_t gate) { return naive_affine(s.w_hh, s.b_hh, gate * size + j, h_before); };
    const auto both = [&](std::int64_t gate) { return from_x(gate) + from_h(gate); };
    const auto at = std::size_t(j);
    switch (s.p.cell) {
      case RecurrentCell::rnn_tanh:
        h[at] = std::tanh(both(0));
        break;
      case RecurrentCell::rnn_relu:
        h[at] = std::fmax(both(0), 0.0);
        break;
      case RecurrentCell::lstm:
        c[at] = naive_sigmoid(both(1)) * c[at] + naive_sigmoid(both(0)) * std::tanh(both(2));
        h[at] = naive_sigmoid(both(3)) * std::tanh(c[at]);
        break;
      case RecurrentCell::gru: {
        const double r = naive_sigmoid(both(0)), z = naive_sigmoid(both(1));
        h[at] = (1 - z) * std::tanh(from_x(2) + r * from_h(2)) + z * h_before[at];
        break;
      }
    }
  }
  if (s.p.proj_size == 0) return;
  const std::vector<double> unprojected = h;
  h.clear();
  for (std::int64_t j = 0; j < s.p.proj_size; ++j) h.push_back(naive_affine(s.w_hr, {}, j, unprojected));
}

inline NaiveStates naive_recurrent(const NaiveRecurrent& s) {
  const auto size = std::size_t(s.p.state_size()), in = std::size_t(s.p.input_size);
  NaiveStates out{std::vector<double>(std::size_t(s.p.steps * s.p.batch) * size), {}};
  for (std::int64_t n = 0; n < s.p.batch; ++n) {
    const auto own = [&](const std::vector<double>& states, std::int64_t width) {
      const auto first = states.begin() + std::ptrdiff_t(n * width);
      return states.empty() ? std::vector<double>(std::size_t(width)) : std::vector<double>(first, first + width);
    };
    std::vector<double> h = own(s.h0, s.p.state_size()), c = own(s.c0, s.p.hidden_size);
    for (std::int64_t k = 0; k < s.p.steps; ++k) {
      const auto row = std::size_t(s.row(s.p.reverse ? s.p.steps - 1 - k : k, n));
      const std::vector<double> x(s.x.begin() + std::ptrdiff_t(row * in), s.x.begin() + std::ptrdiff_t((row + 1) * in));
      naive_step(s, x, h, c);
      for (std::size_t j = 0; j < size; ++j) out.y[row * size + j] = h[j];
    }
    out.c_n.insert(out.c_n.end(), c.begin(), c.end());
  }
  return out;
}

}  // namespace taper::test
