#include "base/memory.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace taper::detail;

TEST_CASE("blocks of any size are aligned, those of 4 MB and more to a huge page, and used again") {
  std::int64_t live = -1;
  bool aligned = true;
  std::thread([&] {
    for (std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{1} << 21, (std::size_t{1} << 22) - 1,
                              std::size_t{1} << 22, (std::size_t{1} << 22) + 64, std::size_t{11} << 20}) {
      void* const block = allocate(bytes);
      const std::uintptr_t page = bytes >= std::size_t{1} << 22 ? std::uintptr_t{1} << 21 : kAlignment;
      aligned = aligned && reinterpret_cast<std::uintptr_t>(block) % page == 0;
      std::memset(block, 1, bytes);
      deallocate(block, bytes);
      void* const again = allocate(bytes);
      aligned = aligned && (!kKeepsBlocks || again == block);
      deallocate(again, bytes);
    }
    live = memory_stats().live_bytes;
  }).join();
  CHECK(aligned);
  CHECK(live == 0);
}

TEST_CASE("freed blocks of a size that is not used any more make room for others") {
  if (!kKeepsBlocks) return;
  bool made_room = false;
  std::int64_t live = -1;
  std::thread([&] {
    constexpr std::size_t old_size = std::size_t{64} << 20, new_size = std::size_t{8} << 20;
    void* blocks[4];
    for (void*& block : blocks) block = allocate(old_size);
    for (void* block : blocks) deallocate(block, old_size);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    deallocate(allocate(new_size), new_size);
    const std::int64_t before = memory_stats().system_allocations;
    deallocate(allocate(new_size), new_size);
    made_room = memory_stats().system_allocations == before;
    live = memory_stats().live_bytes;
  }).join();
  CHECK(made_room);
  CHECK(live == 0);
}

TEST_CASE("small blocks lie side by side, apart from each other, and outlive the thread that asked for them") {
  if (!kKeepsBlocks) return;
  constexpr std::size_t size = 128, region = std::size_t{64} << 10, count = 16 * region / size;
  std::vector<void*> blocks(count);
  std::thread([&] {
    for (std::size_t i = 0; i < count; ++i) std::memset(blocks[i] = allocate(size), int(i % 251), size);
  }).join();
  std::set<std::uintptr_t> regions;
  bool kept = true;
  for (std::size_t i = 0; i < count; ++i) {
    regions.insert(reinterpret_cast<std::uintptr_t>(blocks[i]) / region);
    const auto* const bytes = static_cast<const unsigned char*>(blocks[i]);
    kept = kept && std::all_of(bytes, bytes + size, [i](unsigned char byte) { return byte == i % 251; });
  }
  CHECK(kept);
  CHECK(regions.size() <= 17);
  for (void* block : blocks) deallocate(block, size);
}
