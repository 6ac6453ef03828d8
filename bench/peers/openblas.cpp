#include <cblas.h>

#include "product.hpp"

using namespace bench;

namespace {

template <class T>
void multiply(const Product<T>& p) {
  const auto ta = p.ta ? CblasTrans : CblasNoTrans, tb = p.tb ? CblasTrans : CblasNoTrans;
  const int m = int(p.m), n = int(p.n), k = int(p.k), lda = p.ta ? m : k, ldb = p.tb ? k : n;
  if constexpr (sizeof(T) == 8)
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, p.a, lda, p.b, ldb, 0, p.c, n);
  else
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, p.a, lda, p.b, ldb, 0, p.c, n);
}

}  // namespace

int main(int argc, char** argv) {
  const Maker maker = [](const Task& t) { return product(t, [](const auto& p) { multiply(p); }); };
  return serve({openblas_get_config(), {{"product", maker}}, openblas_set_num_threads}, argc, argv);
}
