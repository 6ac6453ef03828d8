// The smallest program: what including, linking and starting a library costs. Prints its peak of resident memory in
// kilobytes, which the system would otherwise mix up with that of the program that started it.
#include <cstdio>

#ifdef TAPER_BENCH_TORCH
#include <torch/torch.h>
namespace library = torch;
#else
#include "taper/taper.hpp"
namespace library = taper;
#endif

int main() {
  const auto a = library::ones({1});
  if ((a + a).numel() != 1) return 1;
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (!status) return 1;
  long kilobytes = 0;
  for (char line[256]; std::fgets(line, sizeof line, status);)
    if (std::sscanf(line, "VmHWM: %ld", &kilobytes) == 1) std::printf("%ld\n", kilobytes);
  return std::fclose(status);
}
