#include "base/memory.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <new>
#include <utility>

#include "base/fail.hpp"

namespace taper::detail {

constinit thread_local BlockCache block_cache{};

namespace {

constexpr std::size_t kLargest = std::size_t{1} << 48;
constexpr std::size_t kKeptBytes = std::size_t{256} << 20;  // a thread keeps at most this much freed memory

struct SizeClass {
  int index;
  std::size_t bytes;
};

SizeClass size_class(std::size_t bytes) {
  if (bytes <= kSmallBlock) {
    const std::size_t steps = (bytes + kAlignment - 1) / kAlignment;
    return {int(steps), steps * kAlignment};
  }
  const int log = int(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log + 1)
  const std::size_t base = std::size_t{1} << log, quarter = base / 4;
  const std::size_t steps = (bytes - base + quarter - 1) >> (log - 2);  // quarters, 1..4
  return {kSmallClasses + 4 * (log - 12) + int(steps) - 1, base + steps * quarter};
}

/// Memory that small blocks are cut from, side by side: systems leave room between aligned blocks, up to twice as much
/// as they hold, which long graphs would take from the caches. It begins where a multiple of its size does, with this
/// header, and is given back when all its blocks are.
struct Sheet {
  static constexpr std::size_t kBytes = std::size_t{64} << 10;

  std::atomic<std::uint32_t> owners{1};  ///< blocks that are not given back, and the thread that cuts more

  void drop() noexcept {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) ::operator delete (this, std::align_val_t{kBytes});
  }
  /// The one that a block was cut from.
  static Sheet& of(void* block) noexcept {
    return *reinterpret_cast<Sheet*>(reinterpret_cast<std::uintptr_t>(block) / kBytes * kBytes);
  }
};
constexpr bool is_cut(std::size_t bytes) { return kKeepsBlocks && bytes <= kSmallBlock; }

enum class Phase : std::uint8_t { unused, open, closed };

using Clock = std::chrono::steady_clock;

/// From here on a block takes far longer to use than the clock to read.
constexpr std::size_t kLargeBlock = std::size_t{1} << 20;
/// Freed blocks of a large size that nobody asked for in that time make room for others.
constexpr auto kIdle = std::chrono::milliseconds(500);

/// What the slow paths of a thread know beside its cache.
struct Account {
  Clock::time_point asked[kSizeClasses];  ///< when a block of a large size was allocated last
  std::int64_t system_bytes;              ///< got from the system minus given back to it
  std::int64_t system_allocations;
  Sheet* sheet;           ///< the thread's newest
  std::size_t sheet_cut;  ///< bytes of it
  Phase phase;
};
constinit thread_local Account account{};

void drop_sheet() noexcept {
  if (account.sheet) std::exchange(account.sheet, nullptr)->drop();
}

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// What a block is aligned to. Large ones begin where a huge page does.
std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= 2 * kHugePage ? kHugePage : kAlignment};
}

/// Large arrays are read and written up to twice as fast in huge pages, whose addresses the processor keeps at hand.
void ask_for_huge_pages([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // A system that has none goes on with small ones.
  if (bytes >= 2 * kHugePage) (void)::madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

[[gnu::cold, gnu::noinline]] void return_to_system(void* block, std::size_t bytes) noexcept {
  account.system_bytes -= std::int64_t(bytes);
  if (is_cut(bytes))
    Sheet::of(block).drop();
  else
    ::operator delete(block, alignment_of(bytes));
}

/// The bytes of the blocks of a class.
std::size_t class_bytes(int index) {
  if (index < kSmallClasses) return std::size_t(index) * kAlignment;
  const int log = 12 + (index - kSmallClasses) / 4, steps = (index - kSmallClasses) % 4 + 1;
  return (std::size_t{1} << log) + (std::size_t{1} << log) / 4 * std::size_t(steps);
}

/// Gives the kept blocks of a class back.
void give_back(int index) noexcept {
  const std::size_t bytes = class_bytes(index);
  while (FreeBlock* block = block_cache.blocks[index]) {
    block_cache.blocks[index] = block->next;
    block_cache.room += bytes;
    return_to_system(block, bytes);
  }
}

/// Gives back blocks of large sizes that are not used any more, the largest first, until a large block fits.
void make_room(std::size_t bytes) noexcept {
  if (bytes < kLargeBlock || bytes > kKeptBytes || account.phase != Phase::open) return;
  const auto now = Clock::now();
  for (int c = kSizeClasses - 1; c >= kSmallClasses && class_bytes(c) >= kLargeBlock; --c) {
    if (bytes <= block_cache.room) return;
    if (now - account.asked[c] > kIdle) give_back(c);
  }
}

/// Empties the cache when its thread ends; blocks freed even later go straight to the system.
struct ThreadEnd {
  ~ThreadEnd() {
    for (int c = 0; c < kSizeClasses; ++c) give_back(c);
    drop_sheet();
    account.phase = Phase::closed;
    block_cache.room = 0;
  }
};

void open_cache() noexcept {
  static thread_local ThreadEnd thread_end;
  (void)thread_end;
  account.phase = Phase::open;
  block_cache.room = kKeptBytes;
}

void* new_memory(std::size_t bytes, std::align_val_t alignment) {
  void* const memory = ::operator new(bytes, alignment, std::nothrow);
  if (!memory) fail(ErrorKind::io, "memory: the system refused an allocation: expected ", bytes, " bytes, got none");
  return memory;
}

/// A small block of the newest sheet. A thread that has ended keeps no sheet.
void* cut(std::size_t bytes) {
  if (!account.sheet || account.sheet_cut + bytes > Sheet::kBytes) {
    auto* const sheet = new (new_memory(Sheet::kBytes, std::align_val_t{Sheet::kBytes})) Sheet;
    drop_sheet();
    account.sheet = sheet;
    account.sheet_cut = kAlignment;
  }
  void* const block = reinterpret_cast<std::byte*>(account.sheet) + account.sheet_cut;
  account.sheet_cut += bytes;
  account.sheet->owners.fetch_add(1, std::memory_order_relaxed);
  if (account.phase == Phase::closed) drop_sheet();
  return block;
}

[[gnu::cold, gnu::noinline]] void* allocate_from_system(std::size_t bytes) {
  if (account.phase == Phase::unused) open_cache();
  ++account.system_allocations;
  void* const block = is_cut(bytes) ? cut(bytes) : new_memory(bytes, alignment_of(bytes));
  ask_for_huge_pages(block, bytes);
  account.system_bytes += std::int64_t(bytes);
  return block;
}

}  // namespace

void* allocate_slowly(std::size_t bytes) {
  if (bytes > kLargest) [[unlikely]]
    fail(ErrorKind::io, "memory: allocation too large: expected at most ", kLargest, " bytes, got ", bytes);
  const SizeClass size = size_class(bytes);
  if (size.bytes >= kLargeBlock) account.asked[size.index] = Clock::now();
  FreeBlock* const kept = block_cache.blocks[size.index];
  if (!kept) return allocate_from_system(size.bytes);
  block_cache.blocks[size.index] = kept->next;
  block_cache.room += size.bytes;
  return kept;
}

void deallocate_slowly(void* block, std::size_t bytes) noexcept {
  const SizeClass size = size_class(bytes);
  if (account.phase == Phase::unused) open_cache();
  if (size.bytes > block_cache.room) make_room(size.bytes);
  if (!kKeepsBlocks || size.bytes > block_cache.room) {
    return_to_system(block, size.bytes);
    return;
  }
  auto* const kept = static_cast<FreeBlock*>(block);
  kept->next = block_cache.blocks[size.index];
  block_cache.blocks[size.index] = kept;
  block_cache.room -= size.bytes;
}

MemoryStats memory_stats() noexcept {
  const std::int64_t kept = account.phase == Phase::open ? std::int64_t(kKeptBytes - block_cache.room) : 0;
  return {.live_bytes = account.system_bytes - kept, .system_allocations = account.system_allocations};
}

}  // namespace taper::detail
