#pragma once

#include "base/nearest.hpp"

namespace taper::config {

using taper::did_you_mean;
using taper::nearest;

}  // namespace taper::config
