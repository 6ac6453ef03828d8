#pragma once

#include <cstddef>
#include <vector>

namespace taper::oracle {

/// op(A) op(B) for densely stored row-major matrices, summed in double in the order of k.
template <class T>
std::vector<double> gemm(std::size_t m, std::size_t n, std::size_t k, bool transpose_a, bool transpose_b,
                         const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<double> c(m * n, 0.0);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t t = 0; t < k; ++t) {
        const double left = static_cast<double>(transpose_a ? a[t * m + i] : a[i * k + t]);
        const double right = static_cast<double>(transpose_b ? b[j * k + t] : b[t * n + j]);
        c[i * n + j] += left * right;
      }
  return c;
}

}  // namespace taper::oracle
