#pragma once

#include <cstdint>

namespace taper::detail {

/// Bytes of a page.
inline constexpr int kPage = 4096;

/// How many bytes in front of what they read loops ask for memory: a page, or more where this processor was measured
/// to gain by more. It reads a core's memory fastest when enough of it is on its way at once, which its own fetching
/// does not see to everywhere.
extern std::uintptr_t memory_ahead;

/// The same for loops that read one row in its order; 0 where the processor fetches the next page by itself and is
/// slower when asked.
extern std::uintptr_t row_ahead;

/// Bytes of results from which on nobody finds them in a cache any more.
extern std::int64_t beyond_caches;

/// How many times as many those are of results that are several for each number read, of which most processors' caches
/// still have a part.
extern std::int64_t spread_times;

/// Bytes from which on memory is read faster in several places in turn than from first to last.
extern std::int64_t apart_from;

}  // namespace taper::detail
