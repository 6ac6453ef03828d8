#pragma once

#include <cstdint>

namespace taper::kernels {

/// term(0) + ... + term(n - 1) in double, in four lanes that are joined at the end: an order that depends on n alone.
/// For a plain sum of stored elements use `sum_row`.
template <class Term>
inline double sum_terms(std::int64_t n, const Term& term) {
  double lane[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) lane[k] += static_cast<double>(term(i + k));
  for (; i < n; ++i) lane[0] += static_cast<double>(term(i));
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

}  // namespace taper::kernels
