#include "core/memory.hpp"

#include <cstdint>
#include <cstring>
#include <thread>

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
