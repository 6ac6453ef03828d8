#include "core/plan_memory.hpp"

#include <algorithm>
#include <vector>

namespace taper::detail {

namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// Places arrays in the lowest gaps: at the beginning, or in the middle if `amid`. Returns the size of the block.
std::size_t place_each(std::span<Lifetime* const> arrays, bool amid) {
  std::vector<const Lifetime*> placed;  // by offset
  std::size_t size = 0;
  for (Lifetime* array : arrays) {
    const std::size_t bytes = rounded(array->bytes);
    std::size_t offset = 0, end = size;
    for (const Lifetime* other : placed) {
      if (!meet(*other, *array)) continue;
      if (other->offset >= offset + bytes) {
        end = other->offset;
        break;
      }
      offset = std::max(offset, other->offset + rounded(other->bytes));
    }
    if (amid && end > offset + bytes) offset += (end - offset - bytes) / 128 * 64;
    array->offset = offset;
    size = std::max(size, offset + bytes);
    const auto behind = [](std::size_t at, const Lifetime* other) { return at < other->offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, behind), array);
  }
  return size;
}

}  // namespace

std::size_t place(std::span<Lifetime> arrays) {
  std::vector<Lifetime*> waiting;
  for (Lifetime& array : arrays) waiting.push_back(&array);
  std::sort(waiting.begin(), waiting.end(),
            [](auto* a, auto* b) { return a->bytes != b->bytes ? a->bytes > b->bytes : a < b; });
  // Threads share arrays in order. In the middle of where a larger one was, each of two finds its half of a smaller one
  // in its own caches, not in the other's.
  const std::size_t packed = place_each(waiting, false), amid = place_each(waiting, true);
  return amid <= packed ? amid : place_each(waiting, false);
}

std::size_t largest_need(std::span<const Lifetime> arrays) {
  struct Change {
    std::int64_t step;
    bool ends;
    std::size_t bytes;
  };
  std::vector<Change> changes;
  for (const Lifetime& array : arrays) {
    changes.push_back({array.first, false, rounded(array.bytes)});
    changes.push_back({array.last, true, rounded(array.bytes)});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.step != b.step ? a.step < b.step : a.ends < b.ends;  // what ends with a step is needed in it
  });
  std::size_t now = 0, most = 0;
  for (const Change& change : changes) {
    now = change.ends ? now - change.bytes : now + change.bytes;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace taper::detail
