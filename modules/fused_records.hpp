#pragma once

#include "taper/autograd.hpp"

namespace taper::nn {

/// The records of operations that fusions are made of, by the number of spatial dimensions.
const autograd::Op& conv_record(int dims);
const autograd::Op& avg_pool_record(int dims);
const autograd::Op& max_pool_record(int dims);

}  // namespace taper::nn
