#pragma once

#include <span>

#include "base/window.hpp"
#include "taper/nn/pool_description.hpp"

namespace taper::nn {

/// Completes `head` (everything but the dimensions) with the windows of a sliding pool over extents `input`: what
/// `describe` of a layer returns. `where` is the operation's name.
/// Errors: as `output_size`; `ErrorKind::shape` for more than a million windows along a dimension.
PoolDescription describe_sliding(PoolDescription head, const char* where, std::span<const Window1d> windows,
                                 WindowKind kind, std::span<const std::int64_t> input);

/// The same for an adaptive pool with extents `output`. Errors: as `check_adaptive`, `check_adaptive_input`.
PoolDescription describe_adaptive(PoolDescription head, const char* where, std::span<const std::int64_t> input,
                                  std::span<const std::int64_t> output);

}  // namespace taper::nn
