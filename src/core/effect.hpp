#pragma once

#include "taper/autograd.hpp"

namespace taper::detail {

/// Runs `function` on memory of tensors that exist, now and in each replay of a step that is being captured: for what
/// is no operation, as checks of values, which may throw, and running statistics. The versions of `written` grow.
/// It finds `read` as inputs, `written` as aux, and no output.
void run_effect(const char* name, autograd::Op::Forward function, std::initializer_list<autograd::Input> read,
                std::initializer_list<autograd::Input> written, const void* attributes, std::size_t attribute_bytes);

template <class A>
void run_effect(const char* name, autograd::Op::Forward function, std::initializer_list<autograd::Input> read,
                std::initializer_list<autograd::Input> written, const A& attributes) {
  static_assert(std::is_trivially_copyable_v<A> && alignof(A) <= 8, "attributes are copied into the plan bytewise");
  run_effect(name, function, read, written, &attributes, sizeof(A));
}

}  // namespace taper::detail
