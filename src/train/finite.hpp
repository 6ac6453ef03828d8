#pragma once

#include <cstdint>

#include "taper/tensor.hpp"

namespace taper::train {

/// Position of the first element that is NaN or infinite; -1 when there is none. float32 and float64.
std::int64_t find_non_finite(const Tensor& tensor);

}  // namespace taper::train
