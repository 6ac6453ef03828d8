// A chain of additions is recorded, differentiated and freed. It runs with a stack of 256 KB, so that anything that
// recurses along the chain crashes.
#include <cstdio>
#include <cstdlib>

#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

int main(int argc, char** argv) {
  using namespace taper;
  const long length = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 10000000;
  const Tensor x = scalar(1, DType::float64).requires_grad_();
  Tensor y = x;
  for (long i = 0; i < length; ++i) y = add(y, x);
  y.backward();
  const double value = y.item(), gradient = x.grad().item(), expected = double(length) + 1;
  std::printf("value %.0f, gradient %.0f, expected %.0f\n", value, gradient, expected);
  y = Tensor();
  return value == expected && gradient == expected ? 0 : 1;
}
