#pragma once

#include "taper/autograd.hpp"

namespace taper {

/// The record of `relu` for floating types.
const autograd::Op& relu_record();

}  // namespace taper
