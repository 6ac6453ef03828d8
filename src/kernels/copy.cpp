#include "kernels/copy.hpp"

#include "kernels/vectors.hpp"

namespace taper::kernels {

[[gnu::noinline]] void copy_bytes(const void* x, std::int64_t size, void* y) {
  constexpr std::int64_t kAll = kVectorWidth;
  const auto* from = static_cast<const unsigned char*>(x);
  auto* to = static_cast<unsigned char*>(y);
  if (size < kAll) {
    if (size > 0) std::memcpy(to, from, static_cast<std::size_t>(size));
    return;
  }
  const unsigned char* const last = from + size - kAll;
  unsigned char* const last_to = to + size - kAll;
  store<unsigned char>(load(from), to);
  const std::int64_t ahead = kAll - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % kAll);
  from += ahead, to += ahead;  // what is stored does not reach into a further cache line
  for (; last - from >= 4 * kAll; from += 4 * kAll, to += 4 * kAll) {
    Vector<unsigned char> v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v[i] = load(from + i * kAll);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) store<unsigned char>(v[i], to + i * kAll);
  }
  for (; from < last; from += kAll, to += kAll) store<unsigned char>(load(from), to);
  store<unsigned char>(load(last), last_to);
}

}  // namespace taper::kernels
