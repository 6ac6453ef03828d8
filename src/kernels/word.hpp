#pragma once

#include <cstdint>
#include <type_traits>

namespace taper::kernels {

/// What copies take elements for: their size is all that matters, so float32 alone has code of its own.
template <class T>
using Word [[gnu::may_alias]] = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

}  // namespace taper::kernels
