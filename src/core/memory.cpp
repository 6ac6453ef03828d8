#include "core/memory.hpp"

#include <bit>
#include <new>

#include "base/fail.hpp"

namespace taper::detail {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLinear = 1024;  // classes step by 64 bytes up to here, then by quarters of a power of two
constexpr int kLinearClasses = kLinear / kAlignment;
constexpr int kClasses = kLinearClasses + 4 * 38;
constexpr std::size_t kLargest = std::size_t{1} << 48;
constexpr std::int64_t kKeptBytes = std::int64_t{256} << 20;  // a thread keeps at most this much freed memory

struct SizeClass {
  int index;
  std::size_t bytes;
};

SizeClass size_class(std::size_t bytes) {
  if (bytes <= kLinear) {
    const std::size_t steps = bytes == 0 ? 1 : (bytes + kAlignment - 1) / kAlignment;
    return {int(steps) - 1, steps * kAlignment};
  }
  const int log = int(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log + 1)
  const std::size_t base = std::size_t{1} << log, quarter = base / 4;
  const std::size_t steps = (bytes - base + quarter - 1) / quarter;  // 1..4
  return {kLinearClasses + 4 * (log - 10) + int(steps) - 1, base + steps * quarter};
}

/// A freed block holds the way to the next one.
struct FreeBlock {
  FreeBlock* next;
};

struct Cache {
  FreeBlock* blocks[kClasses];
  std::int64_t kept_bytes;
  bool closed;
  MemoryStats stats;
};

constinit thread_local Cache cache{};

void release(void* block) noexcept { ::operator delete (block, std::align_val_t{kAlignment}); }

/// Empties the cache when its thread ends; blocks freed even later go straight to the system.
struct ThreadEnd {
  ~ThreadEnd() {
    cache.closed = true;
    for (FreeBlock*& head : cache.blocks)
      while (FreeBlock* block = head) {
        head = block->next;
        release(block);
      }
  }
};

[[gnu::noinline]] void* allocate_from_system(std::size_t bytes) {
  static thread_local ThreadEnd thread_end;
  (void)thread_end;
  ++cache.stats.system_allocations;
  void* block = ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (!block) fail(ErrorKind::io, "memory: the system refused an allocation: expected ", bytes, " bytes, got none");
  return block;
}

}  // namespace

void* allocate(std::size_t bytes) {
  if (bytes > kLargest) [[unlikely]]
    fail(ErrorKind::io, "memory: allocation too large: expected at most ", kLargest, " bytes, got ", bytes);
  const SizeClass size = size_class(bytes);
  void* block;
  if (FreeBlock* kept = cache.blocks[size.index]) {
    cache.blocks[size.index] = kept->next;
    cache.kept_bytes -= std::int64_t(size.bytes);
    block = kept;
  } else {
    block = allocate_from_system(size.bytes);
  }
  cache.stats.live_bytes += std::int64_t(size.bytes);
  return block;
}

void deallocate(void* block, std::size_t bytes) noexcept {
  const SizeClass size = size_class(bytes);
  cache.stats.live_bytes -= std::int64_t(size.bytes);
  if (!kKeepsBlocks || cache.closed || cache.kept_bytes + std::int64_t(size.bytes) > kKeptBytes) {
    release(block);
    return;
  }
  cache.kept_bytes += std::int64_t(size.bytes);
  auto* kept = static_cast<FreeBlock*>(block);
  kept->next = cache.blocks[size.index];
  cache.blocks[size.index] = kept;
}

MemoryStats memory_stats() noexcept { return cache.stats; }

}  // namespace taper::detail
