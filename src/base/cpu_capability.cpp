#include "base/cpu_capability.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#ifdef TAPER_KERNEL_DISPATCH

#include "base/cpu_features.hpp"

// Written by cmake/kernel_dispatch.awk.
extern "C" {
extern const std::int32_t taper_kernels_baseline[];
extern const std::int32_t taper_kernels_avx2[];
extern const std::int32_t taper_kernels_avx512[];

/// The table through which all calls of kernels go.
[[gnu::visibility("hidden")]] constinit const std::int32_t* taper_kernels = taper_kernels_baseline;
}

#endif

namespace taper::detail {

namespace {

constinit CpuCapability chosen = CpuCapability::baseline;

#ifdef TAPER_KERNEL_DISPATCH

constexpr CpuCapability kAll[] = {CpuCapability::baseline, CpuCapability::avx2, CpuCapability::avx512};

/// Before any constructor of a program's globals may run a kernel.
[[gnu::constructor(101)]] void choose() {
  CpuCapability wanted = offered_cpu_capability();
  if (const char* name = std::getenv("TAPER_CPU_CAPABILITY"); name != nullptr && *name != '\0') {
    const auto* const named = std::find_if(std::begin(kAll), std::end(kAll), [name](CpuCapability capability) {
      return std::strcmp(name, name_of(capability)) == 0;
    });
    if (named != std::end(kAll))
      wanted = *named;
    else
      std::fprintf(stderr, "TAPER_CPU_CAPABILITY: expected default, avx2 or avx512, got '%s'; it is ignored\n", name);
  }
  set_cpu_capability(wanted);
}

#endif

}  // namespace

const char* name_of(CpuCapability capability) noexcept {
  switch (capability) {
    case CpuCapability::avx512:
      return "avx512";
    case CpuCapability::avx2:
      return "avx2";
    default:
      return "default";
  }
}

CpuCapability cpu_capability() noexcept { return chosen; }

#ifdef TAPER_KERNEL_DISPATCH

CpuCapability offered_cpu_capability() noexcept {
  // What x86-64-v3 and x86-64-v4 ask for, as far as compilers use it.
  const bool v3 = TAPER_CPU_SUPPORTS("avx2", AVX2) && TAPER_CPU_SUPPORTS("fma", FMA) &&
                  TAPER_CPU_SUPPORTS("bmi", BMI1) && TAPER_CPU_SUPPORTS("bmi2", BMI2) &&
                  TAPER_CPU_SUPPORTS("popcnt", POPCNT);
  const bool v4 = v3 && TAPER_CPU_SUPPORTS("avx512f", AVX512F) && TAPER_CPU_SUPPORTS("avx512bw", AVX512BW) &&
                  TAPER_CPU_SUPPORTS("avx512cd", AVX512CD) && TAPER_CPU_SUPPORTS("avx512dq", AVX512DQ) &&
                  TAPER_CPU_SUPPORTS("avx512vl", AVX512VL);
  return v4 ? CpuCapability::avx512 : v3 ? CpuCapability::avx2 : CpuCapability::baseline;
}

void set_cpu_capability(CpuCapability capability) noexcept {
  constexpr const std::int32_t* kTables[] = {taper_kernels_baseline, taper_kernels_avx2, taper_kernels_avx512};
  chosen = std::min(capability, offered_cpu_capability());
  taper_kernels = kTables[int(chosen)];
}

#else

CpuCapability offered_cpu_capability() noexcept { return CpuCapability::baseline; }

void set_cpu_capability(CpuCapability) noexcept {}

#endif

}  // namespace taper::detail
