#pragma once

namespace taper::detail {

/// The instruction sets the library has kernels for, weakest first.
enum class CpuCapability { baseline, avx2, avx512 };

/// "default", "avx2", "avx512": PyTorch's names.
const char* name_of(CpuCapability capability) noexcept;

/// What this processor and its system offer, as far as the library has kernels for it.
CpuCapability offered_cpu_capability() noexcept;

/// The set whose kernels run. At the program's start it is the strongest on offer, or a weaker one that the environment
/// variable TAPER_CPU_CAPABILITY names; another name is ignored, with a sentence on standard error.
CpuCapability cpu_capability() noexcept;

/// Runs the kernels of another set from now on; one that is not on offer becomes the strongest that is. No kernel may
/// be running. Results differ between sets in their last bits.
void set_cpu_capability(CpuCapability capability) noexcept;

}  // namespace taper::detail
