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

/// Blocks for tensors, nodes and buffers, 64-byte aligned. Freed blocks are kept per thread by size class and handed
/// out again, so a steady state allocates nothing from the system.
/// Errors: `ErrorKind::io` when the system has no more memory.
void* allocate(std::size_t bytes);

/// Gives back a block of the size it was asked for; on any thread.
void deallocate(void* block, std::size_t bytes) noexcept;

/// What this thread did so far, for tests of leaks and of the steady state.
struct MemoryStats {
  std::int64_t live_bytes = 0;          ///< allocated minus given back on this thread
  std::int64_t system_allocations = 0;  ///< blocks that no free list held
};
MemoryStats memory_stats() noexcept;

}  // namespace taper::detail
