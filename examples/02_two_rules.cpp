// Two rules for the windows of adaptive pooling that are told on forums, and the one that PyTorch and Taper follow.
//
// The first rule takes one window size, k = ceil(L / O), and puts O windows at rounded, evenly spaced starts. It is
// easy to remember and right often enough to survive. The second rule cuts the input into O equal stretches and widens
// each outwards to whole elements: [floor(i L / O), ceil((i + 1) L / O)).
#include <cmath>
#include <cstdio>
#include <string>
#include <taper/taper.hpp>
#include <vector>

using namespace taper;
namespace F = taper::nn::functional;

namespace {

struct Window {
  std::int64_t begin, end;
};
using Windows = std::vector<Window>;

// Evenly spaced from 0 to the last possible start, rounded as torch.round does: half to even.
std::vector<std::int64_t> rounded_starts(std::int64_t length, std::int64_t outputs, std::int64_t size) {
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i < outputs; ++i)
    starts.push_back(std::int64_t(std::nearbyint(double(i * (length - size)) / double(outputs - 1))));
  return starts;
}

Windows rounded_rule(std::int64_t length, std::int64_t outputs) {
  const std::int64_t size = (length + outputs - 1) / outputs;
  Windows windows;
  for (const std::int64_t start : rounded_starts(length, outputs, size)) windows.push_back({start, start + size});
  return windows;
}

// How the rule was first programmed: each window ends where the next begins, so the windows lost their size.
Windows start_to_start_rule(std::int64_t length, std::int64_t outputs) {
  std::vector<std::int64_t> starts = rounded_starts(length, outputs, (length + outputs - 1) / outputs);
  starts.push_back(length);
  Windows windows;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) windows.push_back({starts[i], starts[i + 1]});
  return windows;
}

// Whole numbers only: the same rule in floating point goes wrong where i L / O is whole but its quotient is not exact.
Windows floor_ceil_rule(std::int64_t length, std::int64_t outputs) {
  Windows windows;
  for (std::int64_t i = 0; i < outputs; ++i)
    windows.push_back({i * length / outputs, ((i + 1) * length + outputs - 1) / outputs});
  return windows;
}

std::vector<double> means(const Tensor& x, const Windows& windows) {
  std::vector<double> out;
  for (const auto& [begin, end] : windows) out.push_back(x.narrow(0, begin, end - begin).mean().item());
  return out;
}

void print_row(const char* rule, const Tensor& x, const Windows& windows, const std::vector<double>& truth) {
  std::printf("  %-16s", rule);
  for (const auto& [begin, end] : windows) {
    const std::string slice = std::to_string(begin) + ":" + std::to_string(end);
    std::printf("%7s", slice.c_str());
  }
  const std::vector<double> averages = means(x, windows);
  std::printf("  ->");
  for (const double average : averages) std::printf(" %5.2f", average);
  std::printf("  %s\n", averages == truth ? "right" : "wrong");
}

void compare(std::int64_t length, std::int64_t outputs) {
  const Tensor x = arange(0, length, 1, DType::float32);
  const Tensor pooled = F::adaptive_avg_pool1d(x.unsqueeze(0), {.output_size = outputs});
  const std::vector<double> truth = pooled.to_vector<double>();
  std::printf("0 .. %d to %d, adaptive_avg_pool1d = %s\n", int(length - 1), int(outputs), pooled.to_string().c_str());
  print_row("rounded starts", x, rounded_rule(length, outputs), truth);
  print_row("start to start", x, start_to_start_rule(length, outputs), truth);
  print_row("floor and ceil", x, floor_ceil_rule(length, outputs), truth);
}

}  // namespace

int main() {
  // Both rules agree here, which is why the first one was believed. Only the careless program of it fails.
  compare(14, 4);

  // 7 / 4 = 1.75: the stretches [1.75, 3.5) and [3.5, 5.25) touch three elements each, the outer two only two. One size
  // for all windows cannot say that, so the inner two averages come out wrong. The careless program gets the second
  // one right by luck: the mean of 2 alone is the mean of 1, 2 and 3.
  compare(7, 4);

  // An evenly spaced start of 2.5: is it 2 or 3? The first rule has no answer; the second never has to round a half.
  compare(7, 5);
}
