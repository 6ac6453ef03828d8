#include "support/blas.hpp"

#ifdef TAPER_BLAS
#include "kernels/blas.hpp"
#endif

bool taper::test::is_left_to_blas([[maybe_unused]] const kernels::GemmParams& p) {
#ifdef TAPER_BLAS
  return kernels::blas::takes(p);
#else
  return false;
#endif
}
