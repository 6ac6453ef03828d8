#pragma once

#include <cstddef>
#include <vector>

/// The loops of `machine.cpp`, compiled once for each set of instructions.
struct MachineLoops {
  std::size_t width;  ///< bytes of a vector

  // Arithmetic. An operation is one lane's.
  double (*multiply_add_float)();   ///< kMultiplyAdds vectors
  double (*multiply_add_double)();  ///< the same
  void (*divide)(float* y);         ///< kDivisions elements, of kElements
  void (*take_roots)(float* y);     ///< the same

  // Memory: at places that are multiples of 64, multiples of 512 bytes.
  void (*read)(const char* x, std::size_t bytes);
  /// From eight places at a time, so that more lines are on their way; multiples of 1024 bytes.
  void (*read_apart)(const char* x, std::size_t bytes);
  void (*write)(char* y, std::size_t bytes);
  void (*copy)(const char* x, char* y, std::size_t bytes);
  void (*update)(char* y, std::size_t bytes);
  void (*stream)(const char* x, char* y, std::size_t bytes);  ///< past the caches; a null x: only written
};

constexpr double kMultiplyAdds = 10 * 40000;
constexpr std::size_t kElements = 512;
constexpr double kDivisions = kElements * 500.0;

/// Those of the processor, or of fewer instructions where TAPER_CPU_CAPABILITY asks for it: the largest first.
std::vector<const MachineLoops*> usable_loops();
