# How every target of the tree is compiled. Nothing here reaches a program that links the library.
add_library(taper_build INTERFACE)
# errno and floating-point traps are not used; giving them up changes no value and lets square roots and choices
# vectorise.
target_compile_options(taper_build INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: false alarms about "literal" + std::string.
  target_compile_options(taper_build INTERFACE -Wno-restrict)
endif()
if(TAPER_WERROR)
  target_compile_options(taper_build INTERFACE -Werror)
endif()
if(TAPER_NATIVE)
  target_compile_options(taper_build INTERFACE -march=native)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Intrinsics of AVX-512 begin with a value that is not set, and GCC 12 warns of its own header where they are inlined.
    target_compile_options(taper_build INTERFACE -Wno-uninitialized)
  endif()
endif()

set(TAPER_SANITIZE "" CACHE STRING "Sanitizers to build with, as in -fsanitize=")
if(TAPER_SANITIZE)
  add_compile_options(-fsanitize=${TAPER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TAPER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # For code that is compiled for longer than it runs: checks are calls, which are several times slower.
    if(TAPER_SANITIZE MATCHES "address")
      set(taper_short_checks "SHELL:--param asan-instrumentation-with-call-threshold=0")
    endif()
    # Instrumented code confuses this warning: it fires inside the standard library's <regex>.
    target_compile_options(taper_build INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# Relocations that only add the library's address take a bit each instead of 24 bytes; the C library must know them.
if(BUILD_SHARED_LIBS)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
  check_cxx_source_compiles("
    #include <features.h>
    #if !__GLIBC_PREREQ(2, 36)
    #error too old
    #endif
    int main() {}" TAPER_HAS_PACKED_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()
