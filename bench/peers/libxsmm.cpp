#include <libxsmm.h>

#include "product.hpp"

using namespace bench;

namespace {

/// Kernels are made once for each size, as their users do. Column-major: the row-major product with a and b exchanged.
template <class T>
Work multiply(const Task& t) {
  const int m = int(t["m"]), n = int(t["n"]), k = int(t["k"]);
  if (t["ta"] || t["tb"] || double(m) * n * k > 128.0 * 128 * 128) return {};
  const int lda = n, ldb = k, ldc = n, flags = LIBXSMM_GEMM_FLAG_NONE;
  const T one = 1, zero = 0;
  if constexpr (sizeof(T) == 8) {
    const auto kernel = libxsmm_dmmdispatch(n, m, k, &lda, &ldb, &ldc, &one, &zero, &flags, nullptr);
    if (!kernel) return {};
    return product_of<T>(t, [=](const Product<T>& p) { kernel(p.b, p.a, p.c); });
  } else {
    const auto kernel = libxsmm_smmdispatch(n, m, k, &lda, &ldb, &ldc, &one, &zero, &flags, nullptr);
    if (!kernel) return {};
    return product_of<T>(t, [=](const Product<T>& p) { kernel(p.b, p.a, p.c); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Maker maker = [](const Task& t) { return t.get("double", 0) ? multiply<double>(t) : multiply<float>(t); };
  return serve({LIBXSMM_VERSION, {{"product", maker}}, [](int) {}}, argc, argv);
}
