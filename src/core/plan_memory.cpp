#include "core/plan_memory.hpp"

#include <algorithm>
#include <vector>

namespace taper::detail {

namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

std::size_t place(std::span<Lifetime> arrays) {
  std::vector<Lifetime*> waiting;
  for (Lifetime& array : arrays) waiting.push_back(&array);
  std::stable_sort(waiting.begin(), waiting.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });

  std::vector<const Lifetime*> placed;  // by offset
  std::size_t size = 0;
  for (Lifetime* array : waiting) {
    const std::size_t bytes = rounded(array->bytes);
    std::size_t offset = 0;
    for (const Lifetime* other : placed) {
      if (!meet(*other, *array)) continue;
      if (other->offset >= offset + bytes) break;
      offset = std::max(offset, other->offset + rounded(other->bytes));
    }
    array->offset = offset;
    size = std::max(size, offset + bytes);
    const auto behind = [](std::size_t at, const Lifetime* other) { return at < other->offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, behind), array);
  }
  return size;
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
