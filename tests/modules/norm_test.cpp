#include "taper/nn/norm.hpp"

#include <cmath>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

// What holds for every norm, each called the same way on [N, 6, L].
using namespace taper;
namespace F = taper::nn::functional;
using test::relative_error;
using test::spread;

namespace {

using Doubles = std::vector<double>;
constexpr double kEps = 0.01;

struct Norm {
  const char* name;
  Tensor (*call)(const Tensor& x, const Tensor& w, const Tensor& b);
  bool by_channel = true;  ///< weight and bias are [6], else those of the last extent
  bool centered = true;
  bool fixed = false;  ///< by running statistics
};

Tensor running(const Tensor& like, double value) {
  return full({6}, value, is_floating(like.dtype()) ? like.dtype() : DType::float32);
}

const Norm kNorms[] = {
    {.name = "batch_norm",
     .call = [](const Tensor& x, const Tensor& w,
                const Tensor& b) { return F::batch_norm(x, {}, {}, w, b, {.training = true, .eps = kEps}); }},
    {.name = "batch_norm",
     .call = [](const Tensor& x, const Tensor& w,
                const Tensor& b) { return F::batch_norm(x, running(x, 0.5), running(x, 2), w, b, {.eps = kEps}); },
     .fixed = true},
    {.name = "instance_norm",
     .call = [](const Tensor& x, const Tensor& w,
                const Tensor& b) { return F::instance_norm(x, {}, {}, w, b, {.eps = kEps}); }},
    {.name = "instance_norm",
     .call =
         [](const Tensor& x, const Tensor& w, const Tensor& b) {
           return F::instance_norm(x, running(x, 0.5), running(x, 2), w, b, {.use_input_stats = false, .eps = kEps});
         },
     .fixed = true},
    {.name = "layer_norm",
     .call = [](const Tensor& x, const Tensor& w,
                const Tensor& b) { return F::layer_norm(x, x.shape().back(), w, b, kEps); },
     .by_channel = false},
    {.name = "rms_norm",
     .call = [](const Tensor& x, const Tensor& w, const Tensor&) { return F::rms_norm(x, x.shape().back(), w, kEps); },
     .by_channel = false,
     .centered = false},
    {.name = "group_norm",
     .call = [](const Tensor& x, const Tensor& w, const Tensor& b) { return F::group_norm(x, 2, w, b, kEps); }},
};

Shape affine_shape(const Norm& norm, const Tensor& x) { return {norm.by_channel ? 6 : x.shape().back()}; }

}  // namespace

TEST_CASE("every norm has the gradients of its values") {
  for (const Norm& norm : kNorms)
    for (const Shape& shape : {Shape{2, 6, 5}, Shape{3, 6, 7}, Shape{1, 6, 17}}) {
      INFO(norm.name << " " << to_string(shape) << " " << norm.fixed);
      const Tensor x = spread(shape).requires_grad_();
      const Tensor w = spread(affine_shape(norm, x), 0.7).requires_grad_();
      const Tensor b = spread(affine_shape(norm, x), 0.3).requires_grad_();
      const auto with_both =
          autograd::gradcheck([&](const std::vector<Tensor>& in) { return norm.call(in[0], in[1], in[2]); }, {x, w, b});
      INFO(with_both.to_string());
      CHECK(with_both.ok);
      CHECK(autograd::gradcheck([&](const std::vector<Tensor>& in) { return norm.call(in[0], {}, {}); }, {x}).ok);
      CHECK(autograd::gradcheck([&](const std::vector<Tensor>& in) { return norm.call(in[0], in[1], {}); }, {x, w}).ok);
      if (norm.centered)
        CHECK(
            autograd::gradcheck([&](const std::vector<Tensor>& in) { return norm.call(in[0], {}, in[1]); }, {x, b}).ok);
    }
}

TEST_CASE("every norm accumulates gradients of an input used twice") {
  for (const Norm& norm : kNorms) {
    INFO(norm.name);
    const Tensor x = spread({2, 6, 5}).requires_grad_(), w = spread(affine_shape(norm, x), 0.7).requires_grad_();
    const Tensor b = spread(affine_shape(norm, x), 0.3).requires_grad_();
    const auto twice = [&](const std::vector<Tensor>& in) { return norm.call(in[0], in[1], in[2]) * in[0] + in[0]; };
    CHECK(autograd::gradcheck(twice, {x, w, b}).ok);
    const auto chained = [&](const std::vector<Tensor>& in) {
      return norm.call(norm.call(in[0], in[1], in[2]), in[1], in[2]);
    };
    CHECK(autograd::gradcheck(chained, {x, w, b}).ok);
  }
}

TEST_CASE("a norm takes the mean off: adding a number to all of the input changes nothing") {
  for (const Norm& norm : kNorms) {
    if (norm.fixed || !norm.centered) continue;
    INFO(norm.name);
    const Tensor x = spread({2, 6, 5}), w = spread(affine_shape(norm, x), 0.7), b = spread(affine_shape(norm, x), 0.3);
    const Tensor coarse = (x * 1024.0).to(DType::int64).to(DType::float64) / 1024.0;  // so that the sum is exact
    const Doubles expected = norm.call(coarse, w, b).to_vector<double>();
    for (const double offset : {1e3, -65536.0, 1048576.0})
      CHECK(relative_error(norm.call(coarse + offset, w, b).to_vector<double>(), expected) < 1e-13);
    const Tensor small = to((x * 4.0).to(DType::int64), DType::float32) / 4.0;
    const Doubles expected_small = norm.call(small.to(DType::float64), w, b).to_vector<double>();
    CHECK(relative_error(norm.call(small + 1048576.0, w.to(DType::float32), b.to(DType::float32)).to_vector<float>(),
                         expected_small) < 1e-6);
  }
}

TEST_CASE("a norm of constants gives the bias, with gradients of 0 for the weight") {
  for (const Norm& norm : kNorms) {
    if (norm.fixed || !norm.centered) continue;
    INFO(norm.name);
    for (const double constant : {0.0, 0.1, -7e5}) {
      const Tensor x = full({2, 6, 5}, constant).requires_grad_();
      const Tensor w = ones(affine_shape(norm, x)).requires_grad_(), b = rand(affine_shape(norm, x));
      const Tensor y = norm.call(x, w, b);
      CHECK(y.to_vector<float>() == add(zeros({2, 6, 5}), norm.by_channel ? b.unsqueeze(1) : b).to_vector<float>());
      y.backward(rand({2, 6, 5}));
      CHECK(w.grad().to_vector<double>() == Doubles(std::size_t(w.numel()), 0));
      for (const double d : x.grad().to_vector<double>()) CHECK(std::isfinite(d));
    }
  }
}

TEST_CASE("a norm over more elements than float32 counts keeps its accuracy", "[fault-50]") {
  // Sums of float32 numbers in float32 would stop growing at 2^24.
  const std::int64_t n = (std::int64_t{1} << 20) + 7;
  const Tensor x = add(ones({1, 6, n}), zeros({1, 6, n}));
  float* data = x.data<float>();
  for (std::int64_t i = 0; i < 6 * n; ++i) data[i] = i % 2 == 0 ? 4097.0F : 4099.0F;
  for (const Norm& norm : kNorms) {
    if (norm.fixed || !norm.centered) continue;
    INFO(norm.name);
    const Tensor y = norm.call(x, {}, {});
    const double size = 1 / std::sqrt(1 + kEps);
    CHECK(std::abs(double(y.data<float>()[1]) - size) < 2e-6);
    CHECK(std::abs(double(y.data<float>()[2]) + size) < 2e-6);
  }
}

TEST_CASE("a scale or bias shorter than the channels is refused by every norm (CVE-2021-29555, CVE-2021-29583)",
          "[fault-85][fault-86]") {
  for (const Norm& norm : kNorms) {
    INFO(norm.name);
    const Tensor x = ones({1, 6, 5}), none, one = ones({1}), empty_scale = ones({0});
    const std::string expected =
        norm.by_channel ? "the channels: expected [6], got " : "normalized_shape: expected [5], got ";
    const std::string name = norm.name;
    CHECK_THROWS_WITH(norm.call(x, one, none), name + ": weight does not fit " + expected + "[1]");
    CHECK_THROWS_WITH(norm.call(x, empty_scale, none), name + ": weight does not fit " + expected + "[0]");
    if (!norm.centered) continue;
    CHECK_THROWS_WITH(norm.call(x, none, one), name + ": bias does not fit " + expected + "[1]");
    CHECK_THROWS_WITH(norm.call(x, none, empty_scale), name + ": bias does not fit " + expected + "[0]");
  }
}

TEST_CASE("an input of depth 0 is refused by every norm of channels (CVE-2021-29555)", "[fault-85]") {
  for (const Norm& norm : kNorms) {
    if (!norm.by_channel) continue;
    INFO(norm.name);
    for (const Shape& shape : {Shape{1, 0, 1}, Shape{0, 0, 0}, Shape{1, 0, 1, 1}})
      CHECK_THROWS_WITH(norm.call(ones(shape), {}, {}),
                        std::string(norm.name) + ": no channels: expected >= 1, got 0 in " + to_string(shape));
  }
}

TEST_CASE("every norm takes floating numbers of one type only") {
  for (const Norm& norm : kNorms) {
    INFO(norm.name);
    const std::string name = norm.name;
    const Tensor x = ones({2, 6, 5}), w = ones(affine_shape(norm, x));
    CHECK_THROWS_WITH(norm.call(x.to(DType::int64), {}, {}),
                      name + ": element type not supported: expected float32 or float64, got int64; convert with to()");
    CHECK_THROWS_WITH(norm.call(x, w.to(DType::int64), {}),
                      name + ": element type not supported: expected float32 or float64, got int64; convert with to()");
    CHECK_THROWS_WITH(norm.call(x, w.to(DType::float64), {}),
                      name + ": element types differ: expected float32, got float64 of weight; convert with to()");
  }
}

TEST_CASE("huge extents beside one of 0 cost a norm neither time nor memory", "[fault-12]") {
  const std::int64_t huge = std::int64_t{1} << 40;
  for (const Norm& norm : kNorms) {
    INFO(norm.name);
    const Tensor x = empty({huge, 6, 0}).requires_grad_();
    const Tensor y = norm.call(x, {}, {});
    CHECK(y.shape() == Shape{huge, 6, 0});
    y.backward(empty({huge, 6, 0}));
    CHECK(norm.call(empty({0, 6, huge}), {}, {}).numel() == 0);
  }
}

TEST_CASE("every norm is one recorded operation, and gives the same bits without recording") {
  for (const Norm& norm : kNorms) {
    INFO(norm.name);
    const Tensor x = rand({2, 6, 5}).requires_grad_(), w = rand(affine_shape(norm, x));
    const Tensor y = norm.call(x, w, {});
    CHECK(autograd::Tape::of(y).size() == 2);
    const NoGradGuard no_grad;
    CHECK(norm.call(x, w, {}).to_vector<float>() == y.to_vector<float>());
  }
}

TEST_CASE("every norm names the saved value that was changed before backward") {
  for (const Norm& norm : kNorms) {
    INFO(norm.name);
    const Tensor x = rand({2, 6, 5}).requires_grad_(), w = rand(affine_shape(norm, x)).requires_grad_();
    const Tensor y = norm.call(x * 1.0, w, {});
    {
      const NoGradGuard no_grad;
      w.add_(1);
    }
    CHECK_THROWS_WITH(y.sum().backward(), Catch::Contains("changed in place"));
  }
}

TEST_CASE("every norm treats samples alike wherever they stand, and gives them the same bits in parts") {
  const Tensor x = rand({5, 6, 7});
  const Tensor order = tensor({3, 0, 4, 1, 2});
  for (const Norm& norm : kNorms) {
    if (std::string(norm.name) == "batch_norm" && !norm.fixed) continue;
    INFO(norm.name);
    const Tensor w = rand(affine_shape(norm, x)), y = norm.call(x, w, {});
    CHECK(norm.call(x.index_select(0, order), w, {}).to_vector<float>() == y.index_select(0, order).to_vector<float>());
    CHECK(norm.call(x.narrow(0, 2, 3), w, {}).to_vector<float>() == y.narrow(0, 2, 3).to_vector<float>());
  }
}
