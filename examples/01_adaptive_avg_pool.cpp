// What adaptive average pooling does, seen from both sides: the forward pass says which numbers were averaged, and the
// gradient of numbered outputs says which inputs each output looked at.
#include <cstdio>
#include <taper/taper.hpp>

using namespace taper;
namespace F = taper::nn::functional;

namespace {

void print(const char* name, const Tensor& tensor) { std::printf("%s = %s\n", name, tensor.to_string().c_str()); }

}  // namespace

int main() {
  // 14.0 and not 14: as in PyTorch, whole numbers would make an int64 tensor, which has no gradient.
  const Tensor a = arange(0, 14.0).requires_grad_();
  // Pools take [C, L] or [N, C, L]: one channel of 14 values.
  const Tensor b = F::adaptive_avg_pool1d(a.unsqueeze(0), {.output_size = 4});
  print("b", b);

  // The tape is there before backward is called: what backward will walk, from the last line to the first, and what
  // each operation keeps for it. An average keeps nothing, its gradient does not depend on the values.
  const autograd::Tape tape = autograd::Tape::of(b);
  std::printf("\n%s\n", tape.to_string().c_str());
  for (const auto& entry : tape.entries())
    if (!entry.derivative.empty()) std::printf("%-20s %s\n", entry.op.c_str(), entry.derivative.c_str());

  // b has four elements, so backward wants to know how much each of them counts. Numbering them 1 2 3 4 makes every
  // input's gradient tell its outputs: 0.25 is output 1 shared by 4 inputs, 1.75 is 3/4 + 4/4, an input of two windows.
  b.backward(tensor({{1, 2, 3, 4}}, DType::float32));
  std::printf("\n");
  print("a.grad", a.grad());
}
