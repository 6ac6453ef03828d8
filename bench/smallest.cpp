// The smallest program: what including, linking and starting a library costs.
#ifdef TAPER_BENCH_TORCH
#include <torch/torch.h>
namespace library = torch;
#else
#include "taper/taper.hpp"
namespace library = taper;
#endif

int main() {
  const auto a = library::ones({1});
  return int((a + a).numel()) - 1;
}
