#include "kernels/accumulate.hpp"

#include "kernels/parallel.hpp"

namespace taper::kernels {

template <class T>
void accumulate(T* sum, const T* term, std::int64_t n) {
  // sum_i += term_i
  parallel_for(n, 1, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) sum[i] += term[i];
  });
}

template void accumulate(float*, const float*, std::int64_t);
#ifndef TAPER_ONLY_FLOAT32
template void accumulate(double*, const double*, std::int64_t);
#endif

}  // namespace taper::kernels
