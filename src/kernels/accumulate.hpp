#pragma once

#include <cstdint>

namespace taper::kernels {

/// sum += term, element by element.
template <class T>
void accumulate(T* sum, const T* term, std::int64_t n);

}  // namespace taper::kernels
