#include <cstdlib>
#include <string>

#include "machine_loops.hpp"

extern const MachineLoops machine_loops_baseline;
#ifdef TAPER_MACHINE_SETS
extern const MachineLoops machine_loops_avx2, machine_loops_avx512;
#endif

std::vector<const MachineLoops*> usable_loops() {
  std::vector<const MachineLoops*> found;
#ifdef TAPER_MACHINE_SETS
  const char* const named = std::getenv("TAPER_CPU_CAPABILITY");
  const std::string most = named == nullptr ? "avx512" : named;
  if (most == "avx512" && __builtin_cpu_supports("avx512f")) found.push_back(&machine_loops_avx512);
  if (most != "default" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found.push_back(&machine_loops_avx2);
#endif
  found.push_back(&machine_loops_baseline);
  return found;
}
