#pragma once

#include "core/frozen_plan.hpp"

namespace taper::detail {

/// Operations, each on the result of the one before, which a plan does in one pass with the same bits. Nothing else may
/// use what lies between them; the gradient of the last but one, and no other, reads its output. What the last writes
/// beside its output, its own gradient alone reads.
struct Fusion {
  const char* name;
  std::span<const autograd::Op* const> chain;
  std::size_t attribute_bytes;
  /// Whether the pass is made for the sizes of float32 arrays. Then it has set the attributes of the pass and returns
  /// the bytes of what the forward keeps for the backward, else 0.
  std::size_t (*fits)(const autograd::ForwardArgs& first, const autograd::ForwardArgs& last, void* attributes);
  autograd::Op::Forward forward;  ///< inputs of the first, output of the last; aux[0] is what it keeps
  /// Gradients of the first's inputs from the last's output: of the one, which is never added to, or of all others.
  autograd::Op::Backward backward;
};

/// All there are; in modules/fusions.cpp, which knows the operations.
std::span<const Fusion> fusions();

/// Whether what `command` writes may lie where the first array that it reads does; in modules/fusions.cpp, too.
bool works_in_place(const Command& command);

/// Puts one call in the place of several wherever a fusion fits. The arrays are not placed yet.
void fuse(FrozenPlan& plan);

}  // namespace taper::detail
