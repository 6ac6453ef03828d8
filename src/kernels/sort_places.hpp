#pragma once

#include <cstdint>
#include <cstring>

namespace taper::kernels {

/// Sorts the places 0 .. count - 1 by the row, one of `rows`, that the index has there, equal ones in order: where each
/// belongs follows from how often those before it occur. Those of row r end at end[r]; there is one `end` more than
/// rows.
template <class Place>
[[gnu::noinline]] static void sort_places(const std::int64_t* index, std::int64_t count, std::int64_t rows,
                                          Place* place, Place* end) {
  std::memset(end, 0, static_cast<std::size_t>(rows + 1) * sizeof(Place));
  for (std::int64_t j = 0; j < count; ++j) ++end[index[j] + 1];
  for (std::int64_t r = 0; r < rows; ++r) end[r + 1] = static_cast<Place>(end[r + 1] + end[r]);
  for (std::int64_t j = 0; j < count; ++j) place[end[index[j]]++] = static_cast<Place>(j);
}

}  // namespace taper::kernels
