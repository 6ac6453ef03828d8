#pragma once

#include <cstddef>
#include <cstdint>

namespace taper::detail {

/// Whether freed blocks are kept. Under a sanitizer every block comes from the system, so that it sees each lifetime.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kKeepsBlocks = false;
#else
inline constexpr bool kKeepsBlocks = true;
#endif

inline constexpr std::size_t kAlignment = 64;
/// Classes step by 64 bytes up to here, then by quarters of a power of two.
inline constexpr std::size_t kSmallBlock = 4096;
inline constexpr int kSmallClasses = int(kSmallBlock / kAlignment) + 1;  // the first, of no bytes, stays empty
inline constexpr int kSizeClasses = kSmallClasses + 4 * 36;

/// A freed block holds the way to the next one.
struct FreeBlock {
  FreeBlock* next;
};

/// The freed blocks of a thread.
struct BlockCache {
  FreeBlock* blocks[kSizeClasses];
  std::size_t room;  ///< bytes that may still be kept; none until the thread has got its first block, and after its end
};
extern constinit thread_local BlockCache block_cache;

void* allocate_slowly(std::size_t bytes);
void deallocate_slowly(void* block, std::size_t bytes) noexcept;

/// Blocks of at least one byte for tensors, nodes and buffers, 64-byte aligned. Freed blocks are kept per thread by
/// size class and handed out again, so a steady state allocates nothing from the system. Errors: `ErrorKind::io` when
/// the system has no more memory.
inline void* allocate(std::size_t bytes) {
  const std::size_t steps = (bytes + kAlignment - 1) / kAlignment;
  if (bytes > kSmallBlock || !block_cache.blocks[steps]) [[unlikely]]
    return allocate_slowly(bytes);
  FreeBlock* const block = block_cache.blocks[steps];
  block_cache.blocks[steps] = block->next;
  block_cache.room += steps * kAlignment;
  return block;
}

/// Gives back a block of the size it was asked for; on any thread.
inline void deallocate(void* block, std::size_t bytes) noexcept {
  const std::size_t steps = (bytes + kAlignment - 1) / kAlignment;
  if (!kKeepsBlocks || bytes > kSmallBlock || steps * kAlignment > block_cache.room) [[unlikely]] {
    deallocate_slowly(block, bytes);
    return;
  }
  auto* const kept = static_cast<FreeBlock*>(block);
  kept->next = block_cache.blocks[steps];
  block_cache.blocks[steps] = kept;
  block_cache.room -= steps * kAlignment;
}

/// What this thread did so far, for tests of leaks and of the steady state.
struct MemoryStats {
  std::int64_t live_bytes = 0;          ///< allocated minus given back on this thread
  std::int64_t system_allocations = 0;  ///< blocks that no free list held
};
MemoryStats memory_stats() noexcept;

}  // namespace taper::detail
