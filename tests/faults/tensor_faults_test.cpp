#include <sys/mman.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "base/checked.hpp"
#include "kernels/gemm.hpp"
#include "kernels/parallel.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/numbers.hpp"
#include "taper/creation.hpp"
#include "taper/nn/linear.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::kHuge;

// Faults of other frameworks with tensors, sizes and linear layers. The tag is the row of the list in
// tests/faults/README.md.

namespace {

using Extents = std::span<const std::int64_t>;

}  // namespace

TEST_CASE("products whose rows lie more than 2^32 elements apart are right (mlx 3138, mlx 3248)", "[fault-80]") {
  // Only the pages that hold the few rows are ever touched.
  constexpr std::int64_t rows = 3, k = 5, n = 2;
  for (const std::int64_t apart : {(std::int64_t{1} << 31) - 1, (std::int64_t{1} << 31) + 7}) {
    const std::size_t bytes = std::size_t(rows * apart) * sizeof(float);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      WARN("no address space for rows " << apart << " apart");
      return;
    }
    float* a = static_cast<float*>(memory);
    const float b[k * n] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    float c[rows * n];
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t t = 0; t < k; ++t) a[i * apart + t] = float(10 * i + t);
    kernels::gemm({.m = rows, .n = n, .k = k, .lda = apart, .ldb = n, .ldc = n}, a, b, c);
    ::munmap(memory, bytes);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float expected = 0;
        for (std::int64_t t = 0; t < k; ++t) expected += float(10 * i + t) * b[t * n + j];
        CHECK(c[i * n + j] == expected);
      }
  }
}

template <class Body>
constexpr bool is_loop_body(const Body&) {
  return std::is_invocable_v<const Body&, kernels::WideBound, kernels::WideBound>;
}
static_assert(is_loop_body([](std::int64_t, std::int64_t) {}));
static_assert(!is_loop_body([](int, int) {}), "a body of narrow bounds must not compile");
static_assert(!is_loop_body([](std::int64_t, int) {}), "a body of narrow bounds must not compile");

TEST_CASE("a parallel loop over more than 2^32 units sees 64-bit bounds (CVE-2020-15202)", "[fault-81]") {
  const std::int64_t units = (std::int64_t{1} << 32) + 5;
  const int kept = kernels::max_threads();
  for (const int threads : {1, 2, 3}) {
    kernels::set_max_threads(threads);
    std::mutex mutex;
    std::map<std::int64_t, std::int64_t> ranges;
    std::int64_t calls = 0;
    kernels::parallel_for(units, 1, [&](std::int64_t first, std::int64_t last) {
      const std::lock_guard lock(mutex);
      ranges.emplace(first, last);
      ++calls;
    });
    CHECK(calls >= threads);
    CHECK(calls <= 4 * threads);
    CHECK(std::ssize(ranges) == calls);
    // Each range begins where the one before ends.
    std::int64_t end = 0;
    for (const auto& [first, last] : ranges) {
      CHECK(first == end);
      end = last;
    }
    CHECK(end == units);
  }
  kernels::set_max_threads(kept);
}

TEST_CASE("a Linear without input features starts without NaN and gives its bias (pytorch 42082, 48152)",
          "[fault-83]") {
  for (const bool bias : {true, false}) {
    nn::Linear layer({.in_features = 0, .out_features = 5, .bias = bias});
    for (const Tensor& parameter : layer.parameters())
      for (const double value : parameter.to_vector<double>()) CHECK(std::isfinite(value));
    const Tensor x = ones({3, 0}).requires_grad_();
    const Tensor y = layer(x);
    CHECK(y.shape() == Shape{3, 5});
    for (const double value : y.to_vector<double>()) CHECK(std::isfinite(value));
    if (!bias) continue;
    y.sum().backward();
    CHECK(x.grad().shape() == Shape{3, 0});
    CHECK(layer.parameters()[1].grad().to_vector<float>() == std::vector<float>(5, 3.0F));
  }
}

TEST_CASE("a bias of no elements is refused, and an output of no features is empty (CVE-2021-29546)", "[fault-86]") {
  CHECK(test::message_of([] {
          nn::functional::linear(ones({2, 3}), ones({5, 3}), zeros({0}));
        }) == "linear: bias does not fit the weight: expected [5], got [0]");
  const Tensor x = ones({2, 3}).requires_grad_(), w = ones({0, 3}).requires_grad_(), b = zeros({0}).requires_grad_();
  const Tensor y = nn::functional::linear(x, w, b);
  CHECK(y.shape() == Shape{2, 0});
  y.backward(zeros({2, 0}));
  CHECK(x.grad().to_vector<float>() == std::vector<float>(6, 0.0F));
  CHECK(w.grad().shape() == Shape{0, 3});
  CHECK(b.grad().shape() == Shape{0});
}

TEST_CASE("empty lists and more than eight dimensions are refused (CVE-2017-12852, CVE-2021-33430)", "[fault-92]") {
  const Tensor x = ones({2, 3});
  for (const PadMode mode : {PadMode::zeros, PadMode::reflect, PadMode::replicate, PadMode::circular})
    CHECK(test::message_of([&] { pad(x, {}, mode); }) ==
          "pad: amounts come in pairs: expected {left, right} for each dimension, got 0 numbers");
  const std::vector<std::int64_t> eight(8, 1), nine(9, 1), many(33, 1);
  CHECK(zeros(Shape(Extents(eight))).dim() == 8);
  CHECK(x.reshape({1, 1, 1, 2, 1, 1, 1, 3}).dim() == 8);
  CHECK(test::message_of([&] { zeros(Shape(Extents(nine))); }) ==
        "shape: too many dimensions: expected at most 8, got 9");
  CHECK(test::message_of([&] { zeros(Shape(Extents(many))); }) ==
        "shape: too many dimensions: expected at most 8, got 33");
  CHECK(test::message_of([&] { reshape(x, Extents(nine)); }) ==
        "shape: too many dimensions: expected at most 8, got 9");
  CHECK(test::message_of([&] { expand(x, Extents(many)); }) ==
        "shape: too many dimensions: expected at most 8, got 33");
  const Tensor full = zeros(Shape(Extents(eight)));
  for (const auto& call : {+[](const Tensor& t) { return unsqueeze(t, 0); },
                           +[](const Tensor& t) {
                             return stack({t, t});
                           }})
    CHECK(test::message_of([&] { call(full); }) == "shape: too many dimensions: expected at most 8, got 9");
  CHECK(test::message_of([&] { permute(x, Extents(many)); }) ==
        "permute: one entry for each dimension: expected 2, got 33");
  CHECK(test::message_of([&] { cat({}, 0); }) == "cat: nothing to join: expected at least 1 tensor, got 0");
  CHECK(test::message_of([&] { stack({}, 0); }) == "stack: nothing to join: expected at least 1 tensor, got 0");
}

TEST_CASE("numbers of elements that overflow are refused before memory is taken (CVE-2021-41197, 29584, 41198)",
          "[fault-93]") {
  const std::int64_t big = (std::int64_t{1} << 60) - 1, million = 100'000'000;
  const std::string product =
      "shape: number of elements overflows 64 bits: expected a product below 2^63, got 1152921504606846975 in "
      "dimension 1";
  for (const DType dtype : {DType::float32, DType::float64, DType::int64}) {
    CHECK(test::message_of([&] { empty({big, big}, dtype); }) == product);
    CHECK(test::message_of([&] { zeros({big, big}, dtype); }) == product);
    CHECK(test::message_of([&] { ones({big, big}, dtype); }) == product);
    CHECK(test::message_of([&] { full({big, big}, 1, dtype); }) == product);
  }
  CHECK(test::message_of([&] { rand({big, big}); }) == product);
  CHECK(test::message_of([&] { randn({big, big}); }) == product);
  CHECK(test::message_of([&] { uniform({big, big}, 0, 1); }) == product);
  CHECK(test::message_of([&] { randint(0, 2, {big, big}); }) == product);
  CHECK(test::message_of([&] { expand(ones({1, 1}), {big, big}); }) == product);
  CHECK(test::message_of([&] { reshape(ones({1, 1}), {big, big}); }) == product);
  CHECK(test::message_of([&] {
          expand(ones({1, 1, 1}), {million, million, million});
        }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 100000000 in dimension 2");
  CHECK(test::message_of([&] {
          zeros({0, big, big});
        }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 1152921504606846975 in "
        "dimension 2");
  CHECK(test::message_of([&] { pad(ones({2, 3}), {kHuge, kHuge}); }).find("overflow") != std::string::npos);
  CHECK(test::message_of([&] { pad(ones({2, 3}), {kHuge - 1, 0, kHuge, 0}); }).find("overflow") != std::string::npos);
  CHECK(test::message_of([&] { eye(kHuge, kHuge); }).find("overflow") != std::string::npos);
  CHECK(test::message_of([&] { arange(0, kHuge, 1); }).find("expected") != std::string::npos);
  const std::int64_t wide = std::int64_t{1} << 40;
  const Tensor tall = zeros({wide, 0}), flat = zeros({0, wide});
  CHECK(test::message_of([&] { matmul(tall, flat); }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 1099511627776 in dimension 1");
  CHECK(test::message_of([&] { nn::functional::linear(tall, tall); }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 1099511627776 in dimension 1");
  CHECK(test::message_of([&] {
          matmul(zeros({1 << 30, 0}), zeros({0, 1 << 30}));
        }).find("memory") != std::string::npos);
}

TEST_CASE("an extent list of 255 zeros is refused (CVE-2022-35934)", "[fault-94]") {
  const std::vector<std::int64_t> zeros_255(255, 0);
  const Tensor x = ones({1, 1});
  const std::string sentence = "shape: too many dimensions: expected at most 8, got 255";
  CHECK(test::message_of([&] { reshape(x, Extents(zeros_255)); }) == sentence);
  CHECK(test::message_of([&] { reshape(zeros({0}), Extents(zeros_255)); }) == sentence);
  CHECK(test::message_of([&] { expand(x, Extents(zeros_255)); }) == sentence);
  CHECK(test::message_of([&] { empty(Shape(Extents(zeros_255))); }) == sentence);
}

TEST_CASE("huge numbers and NaN never become wild indices (CVE-2020-15266)", "[fault-97]") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const double value : {1e40, -1e40, 0x1p63, -0x1p64, nan, infinity, -infinity, 0.5})
    CHECK_FALSE(checked::to_int64(value));
  CHECK(*checked::to_int64(-0x1p63) == INT64_MIN);
  const Tensor wild = tensor({1e40, -1e40, nan, infinity, 2.75}, DType::float64);
  CHECK(to(wild, DType::int64).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{INT64_MAX, INT64_MIN, 0, INT64_MAX, 2});
  const Tensor x = ones({3, 5});
  CHECK(test::message_of([&] { index_select(x, 0, to(wild, DType::int64)); }) ==
        "index_select: index out of range: expected 0 to 2, got 9223372036854775807 in row 0");
  CHECK(test::message_of([&] { arange(0, 1e40); }).find("expected") != std::string::npos);
  CHECK(test::message_of([&] { arange(0, nan); }).find("expected") != std::string::npos);
  CHECK(test::message_of([&] { arange(0, 1, nan); }).find("expected") != std::string::npos);
  CHECK(test::message_of([&] { full({2}, 1e40, DType::int64); }).find("expected") != std::string::npos);
  CHECK(test::message_of([&] { tensor({1e40}, DType::int64); }).find("expected") != std::string::npos);
}
