#pragma once

// Which instruction sets the processor has, where the system keeps their registers. The C library knows; where it does
// not tell, 3 KB of the compiler's own code find out.
#if __has_include(<sys/platform/x86.h>) && !defined(__clang__)  // it is not C++ to Clang

#include <sys/platform/x86.h>

/// TAPER_CPU_SUPPORTS("avx2", AVX2): the compiler's name, and that of the C library.
#define TAPER_CPU_SUPPORTS(name, feature) CPU_FEATURE_ACTIVE(feature)

#else

#define TAPER_CPU_SUPPORTS(name, feature) (__builtin_cpu_init(), __builtin_cpu_supports(name) != 0)

#endif
