#pragma once

#include "core/node.hpp"

/// How the gradient of a node gathers: the contributions of its consumers, in memory that is shared while it can be.
namespace taper::detail {

/// `buffer`, or a copy of it that takes its place, as memory of one owner that may be written.
Buffer* unshared(Buffer* buffer);

/// Adds a counted contribution, which it takes over, to what `node` has gathered already.
void add_contribution(Node& node, Buffer* term);

/// Adds a counted contribution, which it takes over, to what `node` has gathered.
inline void contribute(Node& node, Buffer* term) {
  if (node.gradient)
    add_contribution(node, term);
  else
    node.gradient = term;
}

/// Memory for a gradient of `node`, to be written.
inline Buffer* new_gradient(const Node& node) { return new_buffer(std::size_t(node.numel) * size_of(node.dtype)); }

/// Calls the hooks of `node` with its complete gradient, which they may replace.
/// Errors: `ErrorKind::shape` when what a hook returns does not fit.
void run_hooks(Node& node);

/// Adds the complete gradient of `node` to what `grad()` gives.
void keep_gradient(Node& node);

/// Hands the complete gradient of a result on to its producers, and gives it up unless it is a target.
/// Errors: `ErrorKind::tape` (changed or freed saved values; NaN in anomaly mode).
void propagate(Node& node);

}  // namespace taper::detail
