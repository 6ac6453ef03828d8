#include "kernels/conv_average.hpp"
#include "kernels/relu_average.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "taper/creation.hpp"
#include "taper/nn/conv.hpp"
#include "taper/nn/max_pool.hpp"
#include "taper/nn/pool.hpp"
#include "taper/ops.hpp"
#include "taper/optim.hpp"
#include "taper/plan.hpp"

using namespace taper;

namespace {

/// A model of one convolution, what happens to its result, and a loss.
struct Setup {
  std::int64_t batch, in, out, length, kernel, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};

using Head = Tensor (*)(nn::Conv1d& conv, const Tensor& x, std::int64_t length);

Tensor average(const Tensor& x, std::int64_t length) { return nn::functional::avg_pool1d(x, {.kernel_size = length}); }
Tensor plain(nn::Conv1d& conv, const Tensor& x, std::int64_t length) { return average(relu(conv(x)), length); }

std::vector<float> elements(const Tensor& x) { return x.detach().to_vector<float>(); }

/// Results, parameters and gradients of three steps; `plan`: what is replayed.
std::vector<std::vector<float>> three_steps(const Setup& s, Head head, bool replayed, bool trains, std::string* plan) {
  manual_seed(17);
  nn::Conv1d conv{{.in_channels = s.in,
                   .out_channels = s.out,
                   .kernel_size = s.kernel,
                   .padding = s.padding,
                   .dilation = s.dilation,
                   .groups = s.groups,
                   .bias = s.bias}};
  optim::Adam adam(conv.parameters(), {.lr = 0.03});
  const std::int64_t length = s.length + 2 * s.padding - s.dilation * (s.kernel - 1);
  CapturedStep step(
      [&](const Tensor& x) {
        if (!trains) {
          const NoGradGuard guard;
          return head(conv, x, length);
        }
        adam.zero_grad();
        const Tensor y = head(conv, x, length), loss = mul(y, y).sum();
        loss.backward();
        adam.step();
        return loss;
      },
      {.enabled = replayed});
  std::vector<std::vector<float>> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(elements(step(randn({s.batch, s.in, s.length}))[0]));
    for (const Tensor& parameter : conv.parameters()) {
      all.push_back(elements(parameter));
      if (trains) all.push_back(elements(parameter.grad()));
    }
  }
  if (plan != nullptr) *plan = step.plans()[0].to_string();
  return all;
}

void check_same(const Setup& s, Head head, bool expect_fused, bool trains = true) {
  CAPTURE(s.batch, s.in, s.out, s.length, s.kernel, trains);
  std::string plan;
  const auto eager = three_steps(s, head, false, trains, nullptr), replayed = three_steps(s, head, true, trains, &plan);
  REQUIRE(eager.size() == replayed.size());
  for (std::size_t i = 0; i < eager.size(); ++i) CHECK(test::same_bits(eager[i], replayed[i]));
  kernels::ConvParams p{.batch = 1, .in_channels = 1, .out_channels = 1};
  const bool is_fused = plan.find("conv1d, relu, avg_pool1d") != std::string::npos;
  CHECK(is_fused == (expect_fused && kernels::conv_average_fits(p)));
}

}  // namespace

TEST_CASE("a convolution, ReLU and the average of each line are replayed in one pass with the same bits") {
  for (const Setup& s :
       {Setup{2, 3, 32, 10, 3, 1}, Setup{37, 5, 23, 13, 4, 2, 1, 1, false}, Setup{11, 6, 34, 11, 3, 2, 2, 2},
        Setup{1, 1, 1, 1, 1}, Setup{401, 2, 17, 11, 3, 3}, Setup{129, 7, 64, 17, 5}}) {
    check_same(s, plain, true);
    check_same(s, plain, true, false);
  }
}

TEST_CASE("sizes that the pass is not made for are replayed one by one") {
  check_same({3, 5, 7, 19, 2, 1}, plain, false);
  check_same({3, 5, 67, 11, 2}, plain, false);
  check_same({3, 31, 7, 11, 3}, plain, false);
  check_same(
      {5, 3, 7, 11, 3, 2}, [](nn::Conv1d& conv, const Tensor& x, std::int64_t) { return average(relu(conv(x)), 3); },
      false);
}

TEST_CASE("what is used elsewhere is computed") {
  const Setup s{5, 3, 7, 11, 3};
  // The result of the convolution, or of ReLU, goes on to something else.
  check_same(
      s,
      [](nn::Conv1d& conv, const Tensor& x, std::int64_t n) {
        const Tensor y = conv(x);
        return add(average(relu(y), n), y.mean());
      },
      false);
  check_same(
      s,
      [](nn::Conv1d& conv, const Tensor& x, std::int64_t n) {
        const Tensor y = relu(conv(x));
        return mul(average(y, n), y.mean());
      },
      false);
  // Its input is differentiated.
  check_same(
      s,
      [](nn::Conv1d& conv, const Tensor& x, std::int64_t n) {
        return average(relu(conv(x.detach().requires_grad_())), n);
      },
      false);
  // Something runs between the three.
  check_same(
      s,
      [](nn::Conv1d& conv, const Tensor& x, std::int64_t n) {
        const Tensor y = conv(x), z = mul(conv.bias, conv.bias).sum();
        return add(average(relu(y), n), z);
      },
      false);
}

TEST_CASE("a convolution that is run twice adds its gradients") {
  check_same(
      {5, 3, 7, 11, 3},
      [](nn::Conv1d& conv, const Tensor& x, std::int64_t n) {
        return add(plain(conv, x, n), plain(conv, mul(x, 2), n));
      },
      true);
}

// --- ReLU, averages of two by two -----------------------------------------------------------------------------------

namespace {

/// What happens to the result of a convolution over planes: the results of a step, a loss in front.
using Planes = std::vector<Tensor> (*)(const Tensor& y, const Tensor& bias);

Tensor halved(const Tensor& x) { return nn::functional::avg_pool2d(x, {.kernel_size = 2}); }
Tensor squares(const Tensor& x) { return mul(x, x).sum(); }

/// Results, parameters and gradients of three steps.
std::vector<std::vector<double>> trace_planes(Planes planes, DType dtype, bool replayed, bool trains,
                                              std::string* plan) {
  manual_seed(19);
  nn::Conv2d conv{{.in_channels = 3, .out_channels = 5, .kernel_size = 4}};
  conv.to(dtype);
  optim::Adam adam(conv.parameters(), {.lr = 0.03});
  CapturedStep step(
      [&](const Tensor& x) {
        const autograd::GradModeGuard mode(trains);
        if (trains) adam.zero_grad();
        std::vector<Tensor> results = planes(conv(x), conv.bias);
        if (trains) {
          results[0].backward();
          adam.step();
        }
        return results;
      },
      {.enabled = replayed});
  std::vector<std::vector<double>> all;
  for (int i = 0; i < 3; ++i) {
    for (const Tensor& result : step(to(randn({7, 3, 13, 17}), dtype))) all.push_back(result.to_vector<double>());
    for (const Tensor& parameter : conv.parameters()) {
      all.push_back(parameter.detach().to_vector<double>());
      if (trains) all.push_back(parameter.grad().to_vector<double>());
    }
  }
  if (plan != nullptr) *plan = step.plans()[0].to_string();
  return all;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

void check_maxima(Planes planes, bool expect_fused, DType dtype = DType::float32) {
  std::string plan;
  const auto eager = trace_planes(planes, dtype, false, true, nullptr);
  CHECK(trace_planes(planes, dtype, true, true, &plan) == eager);
  CHECK(count(plan, "relu, max_pool2d") == (expect_fused ? 2 : 0));
  CHECK(count(plan, "relu") == 2);
  CHECK(count(plan, "max_pool2d") == 2);
}

void check_planes(Planes planes, bool expect_fused, DType dtype = DType::float32, bool expect_evaluated = false) {
  kernels::AvgPoolParams pool{{.planes = 35, .in = {1, 10, 14}, .out = {1, 5, 7}, .kernel = {1, 2, 2}}};
  pool.stride[1] = pool.stride[2] = 2;
  for (const bool trains : {false, true}) {
    const bool is_fused = (expect_fused || (expect_evaluated && !trains)) && kernels::relu_average_fits(pool);
    CAPTURE(trains);
    std::string plan;
    const auto eager = trace_planes(planes, dtype, false, trains, nullptr);
    CHECK(trace_planes(planes, dtype, true, trains, &plan) == eager);
    const std::size_t passes = trains ? 2 : 1;
    CHECK(count(plan, "relu, avg_pool2d") == (is_fused ? passes : 0));
    CHECK(count(plan, "relu") == passes);
    CHECK(count(plan, "avg_pool2d") == passes);
  }
}

}  // namespace

TEST_CASE("ReLU and averages of two by two are replayed in one pass with the same bits") {
  const auto plain = [](const Tensor& y, const Tensor&) { return std::vector{squares(halved(relu(y)))}; };
  check_planes(plain, true);
  check_planes(plain, false, DType::float64);
  check_planes(
      [](const Tensor& y, const Tensor&) {
        const Tensor loss = squares(halved(relu(y)));
        return std::vector{add(loss, y.mean())};  // to whose gradient that of ReLU is added
      },
      false, DType::float32, true);
}

TEST_CASE("the result of ReLU is computed where somebody sees it") {
  check_planes(
      [](const Tensor& y, const Tensor&) {
        const Tensor r = relu(y);
        return std::vector{add(squares(halved(r)), r.mean())};
      },
      false);
  check_planes(
      [](const Tensor& y, const Tensor&) {
        const Tensor r = relu(y);
        return std::vector{squares(halved(r)), r};
      },
      false);
  check_planes(
      [](const Tensor& y, const Tensor& bias) {
        const Tensor r = relu(y), between = bias.sum();
        return std::vector{add(squares(halved(r)), between)};
      },
      false);
}

TEST_CASE("a gradient between ReLU and the averages that is kept is computed") {
  Tensor bias = full({5, 1, 1}, 0.25).requires_grad_();
  CapturedStep step([&](const Tensor& x) {
    bias.set_grad(Tensor());
    const Tensor r = relu(add(x, bias));
    r.retain_grad();
    squares(halved(r)).backward();
    return r.grad();
  });
  const Tensor x = randn({3, 5, 4, 6});
  const std::vector<float> first = elements(step(x)[0]), gradient = elements(bias.grad());
  CHECK(elements(step(x)[0]) == first);
  CHECK(elements(bias.grad()) == gradient);
  CHECK(count(step.plans()[0].to_string(), "relu, avg_pool2d") == 0);
}

TEST_CASE("ReLU behind maxima is replayed on what is left with the same bits") {
  check_maxima(
      [](const Tensor& y, const Tensor&) {
        return std::vector{squares(nn::functional::max_pool2d(relu(y), {.kernel_size = 2}))};
      },
      true);
  check_maxima(
      [](const Tensor& y, const Tensor&) {
        const nn::MaxPool2dOptions windows{.kernel_size = {3, 5}, .stride = nn::Sizes<2>{2, 1}, .padding = {1, 2}};
        return std::vector{nn::functional::max_pool2d(relu(sub(y, 0.75)), windows).sum()};
      },
      true);
  check_maxima(
      [](const Tensor& y, const Tensor&) {
        return std::vector{squares(nn::functional::max_pool2d(relu(y), {.kernel_size = 2}))};
      },
      false, DType::float64);
}

TEST_CASE("indices of maxima that somebody sees are those of the results of ReLU") {
  check_maxima(
      [](const Tensor& y, const Tensor&) {
        const auto [values, indices] = nn::functional::max_pool2d_with_indices(relu(sub(y, 0.75)), {.kernel_size = 2});
        return std::vector{squares(values), indices};
      },
      false);
}
