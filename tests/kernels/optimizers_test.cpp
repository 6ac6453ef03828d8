#include "kernels/optimizers.hpp"

#include <array>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

// Three steps from these parameters with these gradients; the expected ends were computed by PyTorch 2.13 in float64.
Values start() {
  Values p;
  for (int i = 1; i <= 7; ++i) p.push_back((i * 5 % 7 - 3) / 4.0);
  return p;
}
Values gradient_of_step(int step) {
  const int factor[] = {3, 7, 2};
  Values g;
  for (int i = 1; i <= 7; ++i) g.push_back((i * factor[step] % 11 - 5) / 8.0);
  return g;
}

/// The seven elements as two parameters, of three and of four.
template <class T>
std::array<StepArrays, 2> halves(std::vector<T>& p, const std::vector<T>& g, std::vector<T>* first = nullptr,
                                 std::vector<T>* second = nullptr, std::vector<T>* third = nullptr,
                                 std::int64_t cut = 3) {
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    const auto from = [&](std::vector<T>* state) { return state ? state->data() + begin : nullptr; };
    return StepArrays{p.data() + begin, g.data() + begin, {from(first), from(second), from(third)}, end - begin};
  };
  return {part(0, cut), part(cut, std::int64_t(p.size()))};
}

Values after_sgd(SgdStep s) {
  Values p = start(), momentum(7, 99);
  for (int step = 0; step < 3; ++step) {
    const Values g = gradient_of_step(step);
    s.first = step == 0;
    sgd_step<double>(s, halves(p, g, s.momentum == 0 ? nullptr : &momentum));
  }
  return p;
}

Values after_adam(AdamStep s, bool amsgrad) {
  Values p = start(), average(7), square(7), largest(7);
  for (int step = 0; step < 3; ++step) {
    const Values g = gradient_of_step(step);
    s.step = step + 1;
    s.amsgrad = amsgrad;
    adam_step<double>(s, halves(p, g, &average, &square, amsgrad ? &largest : nullptr));
  }
  return p;
}

constexpr double kRounding = 1e-15;

}  // namespace

TEST_CASE("SGD steps as PyTorch does") {
  CHECK(distance(after_sgd({.lr = 0.1}), Values{0.5375, 0.025, -0.625, 0.7500000000000001, 0.2375, -0.275, -0.7875}) <
        kRounding);
  CHECK(distance(after_sgd({.lr = 0.1, .weight_decay = 0.01}),
                 Values{0.5359765245, 0.0249999875, -0.6233390495, 0.7476647992500001, 0.23668826224999998,
                        -0.27415077475, -0.78512731175}) < kRounding);
  CHECK(distance(after_sgd({.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.01}),
                 Values{0.55717685568, 0.014146991999999999, -0.73779487168, 0.83258629152, 0.28955642783999996,
                        -0.35238543584, -0.89541529952}) < kRounding);
  CHECK(distance(after_sgd({.lr = 0.1, .momentum = 0.9, .nesterov = true}),
                 Values{0.589475, 0.048512500000000014, -0.8650749999999999, 0.816825, 0.27586249999999995, -0.376475,
                        -0.9174375}) < kRounding);
  CHECK(distance(after_sgd({.lr = 0.1, .momentum = 0.9, .maximize = true}),
                 Values{0.44225, -0.026125000000000006, -0.23325, 0.67575, 0.207375, -0.13725, -0.605625}) < kRounding);
}

TEST_CASE("momentum alone steps as it does beside other options") {
  const auto g = numbers<float>(1009, 3), start = numbers<float>(1009, 4);
  std::vector<float> against = g;
  for (float& v : against) v = -v;
  const auto after = [&](const std::vector<float>& gradient, bool maximize) {
    std::vector<float> p = start, momentum(p.size(), 0.25f);
    for (int step = 0; step < 3; ++step)
      sgd_step<float>({.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .maximize = maximize},
                      halves<float>(p, gradient, &momentum, nullptr, nullptr, 67));
    p.insert(p.end(), momentum.begin(), momentum.end());
    return p;
  };
  CHECK(after(g, false) == after(against, true));
}

TEST_CASE("Adam alone steps as it does beside other options") {
  const auto g = numbers<float>(1009, 3), start = numbers<float>(1009, 4);
  std::vector<float> against = g;
  for (float& v : against) v = -v;
  for (const AdamStep& options : {AdamStep{.lr = 0.1}, AdamStep{.lr = 0.1, .weight_decay = 0.1, .decoupled = true},
                                  AdamStep{.lr = 0.1, .beta1 = 0.3}}) {
    const auto after = [&](const std::vector<float>& gradient, bool maximize) {
      std::vector<float> p = start, average(p.size()), square(p.size());
      AdamStep s = options;
      s.maximize = maximize;
      for (s.step = 1; s.step <= 3; ++s.step)
        adam_step<float>(s, halves<float>(p, gradient, &average, &square, nullptr, 67));
      p.insert(p.end(), average.begin(), average.end());
      p.insert(p.end(), square.begin(), square.end());
      return p;
    };
    CHECK(after(g, false) == after(against, true));
  }
}

TEST_CASE("Adam and AdamW step as PyTorch does") {
  CHECK(distance(after_adam({.lr = 0.1}, false),
                 Values{0.6384439461476404, -0.011465562464342494, -0.7861737233169803, 0.8886729750555176,
                        0.425686670630751, -0.459511736875563, -0.9413448671694579}) < kRounding);
  CHECK(distance(after_adam({.lr = 0.1, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.01}, false),
                 Values{0.6309233846025304, -0.0010790416801789576, -0.7835033227021362, 0.8709368059150405,
                        0.41945056886559545, -0.4524040616631076, -0.9265255926524814}) < kRounding);
  CHECK(distance(after_adam({.lr = 0.1, .maximize = true}, true),
                 Values{0.36155605385235956, 0.011465562464342494, -0.21382627668301973, 0.6113270249444824,
                        0.07431332936924899, -0.04048826312443702, -0.558688644121651}) < kRounding);
  CHECK(distance(after_adam({.lr = 0.1, .beta1 = 0.3, .beta2 = 0.9}, false),
                 Values{0.6229274518225698, 0.0583161378832371, -0.7608268616857362, 0.7825790872544475,
                        0.379651442756346, -0.40667127836323963, -0.8462525855092775}) < kRounding);
  CHECK(distance(after_adam({.lr = 0.1, .weight_decay = 0.1, .decoupled = true}, false),
                 Values{0.6216560778040825, -0.009841666132057558, -0.7683335823384713, 0.8639377569369946,
                        0.4153536397037996, -0.4491313049537549, -0.9164090589623267}) < kRounding);
  CHECK(distance(after_adam({.lr = 0.1, .beta1 = 0.8, .beta2 = 0.3, .weight_decay = 0.1, .decoupled = true}, true),
                 Values{0.6120087689201249, -0.016049578508908424, -0.7442733440114879, 0.8452456767649628,
                        0.40076020556309133, -0.4303023003728991, -0.8874985162867249}) < kRounding);
}

TEST_CASE("a sum of squares is exact on whole numbers and joins its blocks in a fixed order") {
  CHECK(sum_of_squares<double>(nullptr, 0) == 0);
  const std::vector<float> g(1500007, 3.0f);
  CHECK(sum_of_squares(g.data(), 1500007) == 9.0 * 1500007);
  CHECK(sum_of_squares(g.data(), 5) == 45);
}

TEST_CASE("optimisers give the same bits on any number of threads") {
  const auto g = numbers<float>(100003, 1), p = numbers<float>(100003, 2);
  CHECK(same_on_any_threads([&] { return std::vector<double>{sum_of_squares(g.data(), 100003)}; }));
  for (const std::int64_t first : {1009, 50021, 98999})
    CHECK(same_on_any_threads([&] {
      std::vector<float> q = p, average(p.size()), square(p.size());
      adam_step<float>({}, halves<float>(q, g, &average, &square, nullptr, first));
      return q;
    }));
  CHECK(same_on_any_threads([&] {
    std::vector<float> q = p, momentum(p.size());
    sgd_step<float>({.momentum = 0.9, .first = true}, halves<float>(q, g, &momentum, nullptr, nullptr, 70001));
    return q;
  }));
}
