#pragma once

#include "kernels/gemm.hpp"

namespace taper::test {

/// Whether the product is a BLAS's, whose bits are up to it.
bool is_left_to_blas(const kernels::GemmParams& p);

}  // namespace taper::test
