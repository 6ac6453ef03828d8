#pragma once

/// Before a loop: its turns do not depend on each other, whatever its pointers look like to the compiler. Clang checks
/// for overlap at run time instead.
#if defined(__GNUC__) && !defined(__clang__)
#define TAPER_INDEPENDENT_TURNS _Pragma("GCC ivdep")
#else
#define TAPER_INDEPENDENT_TURNS
#endif
