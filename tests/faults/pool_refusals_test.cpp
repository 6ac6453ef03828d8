#include "base/fail.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/pools.hpp"
#include "taper/autograd.hpp"

using namespace taper;
using namespace taper::test;
using nlohmann::json;
using pools::kAdaptive;
using pools::kSliding;

// Options and inputs that broke the pools of other frameworks: refused alike by every pool of the kind, as a function,
// as a layer and in JSON. The tag is the row of the list in tests/faults/README.md.

namespace {

constexpr std::int64_t kLargest = INT64_MAX;

/// `value` in the last of `n` places, `rest` in the others; the value itself for one place.
json last(int n, const json& value, const json& rest) {
  if (n == 1) return value;
  json list(std::size_t(n), rest);
  list.back() = value;
  return list;
}

/// " in dimension d", which pools of one dimension do not need.
std::string in_dimension(const PoolKind& pool, int d) { return pool.dims > 1 ? cat(" in dimension ", d) : ""; }

}  // namespace

TEST_CASE("a stride of 0 is refused (CVE-2025-2953, pytorch 149274)", "[fault-1]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    CHECK(pool.refusal(with_extents({2, 3}, pool.dims, 32), {{"kernel_size", 3}, {"stride", 0}}) ==
          "stride must be positive: expected >= 1, got 0");
    CHECK(pool.refusal(with_extents({2, 3}, pool.dims, 32), {{"kernel_size", 3}, {"stride", -2}}) ==
          "stride must be positive: expected >= 1, got -2");
  }
}

TEST_CASE("a kernel of 0 or below is refused in any dimension (CVE-2021-41196)", "[fault-2][fault-29]") {
  for (const PoolKind& pool : kSliding)
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
      INFO(pool.op << " with " << bad);
      CHECK(pool.refusal(with_extents({3, 2}, pool.dims), {{"kernel_size", last(pool.dims, bad, 2)}, {"stride", 1}}) ==
            cat("kernel_size must be positive: expected >= 1, got ", bad, in_dimension(pool, pool.dims - 1)));
    }
}

TEST_CASE("a kernel that is no whole number of 64 bits is refused (CVE-2022-35941)", "[fault-3]") {
  for (const PoolKind& pool : kSliding)
    for (const char* value : {"1e20", "2.9", "true", "\"3\"", "-1e19"}) {
      INFO(pool.type << " with " << value);
      const std::string errors =
          pool.errors_in_json(with_extents({1, 1}, pool.dims), {{"kernel_size", test::parsed(value)}});
      CHECK(errors.find("error: /layers/0/kernel_size (layer ") != std::string::npos);
      CHECK(errors.find("expected an integer") != std::string::npos);
    }
}

TEST_CASE("a kernel larger than the input is refused (CVE-2022-35989, pytorch 4986)", "[fault-4][fault-8]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    const auto all = [&](int value) {
      const std::string list = pool.dims == 2 ? ", " : pool.dims == 3 ? ", , " : "";
      std::string text = std::to_string(value);
      for (int d = 1; d < pool.dims; ++d) text += ", " + std::to_string(value);
      return pool.dims == 1 ? text : "[" + text + "]";
    };
    CHECK(pool.refusal(with_extents({1, 1}, pool.dims, 1), {{"kernel_size", 2}}) ==
          "output size is too small: expected >= 1, got " + all(0) + "; input size " + all(1) + ", kernel_size " +
              all(2) + ", stride " + all(2) + ", padding " + all(0) + ", dilation " + all(1));
    CHECK(pool.refusal(with_extents({1, 1}, pool.dims, 1), {{"kernel_size", 4}, {"stride", 1}, {"ceil_mode", true}}) ==
          "output size is too small: expected >= 1, got " + all(-2) + "; input size " + all(1) + ", kernel_size " +
              all(4) + ", stride " + all(1) + ", padding " + all(0) + ", dilation " + all(1));
  }
}

TEST_CASE("a negative output size in ceil mode is refused with the size (pytorch 88464)", "[fault-16]") {
  for (const PoolKind& pool : kSliding) {
    const std::string sentence =
        pool.refusal(with_extents({2, 3}, pool.dims, 1), {{"kernel_size", 4}, {"stride", 1}, {"ceil_mode", true}});
    CHECK(sentence.find("output size is too small: expected >= 1, got ") == 0);
    CHECK(sentence.find("-2") != std::string::npos);
  }
}

TEST_CASE("a stride of 0 in one dimension is refused and named (CVE-2022-21725)", "[fault-5]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    CHECK(pool.refusal(with_extents({2, 3}, pool.dims), {{"kernel_size", 2}, {"stride", last(pool.dims, 0, 1)}}) ==
          "stride must be positive: expected >= 1, got 0" + in_dimension(pool, pool.dims - 1));
  }
}

TEST_CASE("a kernel of 0 over an empty input is refused for the kernel (CVE-2023-25669)", "[fault-6]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    const Shape x = with_extents({1, 0}, pool.dims, 0);
    for (const json& options : {json{{"kernel_size", 0}}, json{{"kernel_size", 0}, {"stride", 0}}})
      CHECK(message_of([&] { pool(zeros(x), options); }) ==
            std::string(pool.op) + ": kernel_size must be positive: expected >= 1, got 0");
    CHECK(message_of([&] {
            pool(zeros(x), {{"kernel_size", 1}});
          }) == cat(pool.op, ": no channels: expected >= 1, got 0 in ", x));
    CHECK(message_of([&] {
            pool(zeros(with_extents({1, 2}, pool.dims, 0)), {{"kernel_size", 1}});
          }) == cat(pool.op, ": input size must be positive: expected >= 1, got 0", in_dimension(pool, 0)));
  }
}

TEST_CASE("a dilated kernel beyond 63 bits is refused as an overflow (pytorch 73190)", "[fault-9]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    CHECK(
        pool.refusal(with_extents({1, 1}, pool.dims), {{"kernel_size", 1250999896764}, {"dilation", 1250999896764}}) ==
        "dilated kernel overflows 64 bits: expected dilation * (kernel_size - 1) + 1 below 2^63, got dilation "
        "1250999896764 and kernel_size 1250999896764" +
            in_dimension(pool, 0));
  }
}

TEST_CASE("the stride is named first when kernel and stride are absurd (pytorch 145065)", "[fault-11]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    CHECK(pool.refusal(with_extents({2, 1}, pool.dims),
                       {{"kernel_size", kLargest}, {"stride", -1}, {"ceil_mode", true}}) ==
          "stride must be positive: expected >= 1, got -1");
  }
}

TEST_CASE("a shape whose extents overflow beside a 0 is refused (pytorch 94698)", "[fault-12]") {
  CHECK(message_of([] {
          zeros({9, 15, 0, 2772747373535906632, 0, 14});
        }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 2772747373535906632 in "
        "dimension 3");
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    const json options = {{"kernel_size", 1}, {"stride", 1}};
    const Shape many{9, 15, 0, 7, 0, 14}, few = with_extents({}, pool.dims);
    for (const Shape& shape : {many, few})
      CHECK(message_of([&] { pool(zeros(shape), options); }) ==
            cat(pool.op, ": wrong number of dimensions: expected ", pool.dims + 1, "-D unbatched or ", pool.dims + 2,
                "-D batched input, got ", shape.rank(), "-D ", shape));
  }
}

TEST_CASE("padding of more than half a kernel is refused", "[fault-7]") {
  for (const PoolKind& pool : kSliding)
    for (const std::int64_t kernel : {1, 2, 3, 4, 5}) {
      INFO(pool.op << " with kernel " << kernel);
      const Shape x = with_extents({2, 3}, pool.dims);
      CHECK(pool.refusal(x, {{"kernel_size", kernel}, {"padding", kernel / 2 + 1}}) ==
            cat("padding must be at most half the kernel size: expected <= ", kernel / 2, ", got ", kernel / 2 + 1));
      CHECK(pool.refusal(x, {{"kernel_size", kernel}, {"padding", -1}}) ==
            "padding must not be negative: expected >= 0, got -1");
      CHECK(pool.refusal(x, {{"kernel_size", kernel}, {"padding", kernel / 2}}) == "no error");
    }
}

TEST_CASE("a divisor of 0 or below is refused, one that is left out is the window's (pytorch 179303, TorchSharp 189)",
          "[fault-28][fault-30]") {
  for (const PoolKind& pool : kSliding) {
    if (!pool.average || pool.dims == 1) continue;
    INFO(pool.op);
    const Shape x = with_extents({2, 3}, pool.dims);
    for (const int divisor : {0, -1, -7})
      CHECK(pool.refusal(x, {{"kernel_size", 2}, {"divisor_override", divisor}}) ==
            cat("divisor_override must be positive: expected >= 1, got ", divisor));
    CHECK(pool.refusal(x, {{"kernel_size", 2}, {"divisor_override", nullptr}}) == "no error");
    CHECK(pool(ones(x), {{"kernel_size", 2}, {"divisor_override", nullptr}}).max().item() == 1);
  }
}

TEST_CASE(
    "a gradient of another shape than the output is refused (CVE-2021-29577, CVE-2023-25664, CVE-2022-35968, "
    "CVE-2021-29579, CVE-2021-29574, pytorch 194803)",
    "[fault-32][fault-33][fault-35][fault-37][fault-39]") {
  const auto check = [](const PoolKind& pool, const json& options, const Shape& x) {
    INFO(pool.op);
    const Tensor input = ones(x).requires_grad_();
    const Tensor y = pool(input, options);
    std::vector<Shape> wrong = {y.shape().with(0, 1),  y.shape().with(0, 0),
                                y.shape().with(1, 1),  Shape{},
                                y.shape().concat({1}), with_extents({0, 0}, pool.dims, 0)};
    for (const Shape& shape : wrong)
      CHECK(message_of([&] { y.backward(zeros(shape)); }) ==
            cat("backward: the gradient does not fit the tensor: expected ", y.shape(), ", got ", shape));
    CHECK(message_of([&] { autograd::grad({y}, {input}, {ones(y.shape())}, {.create_graph = true}); }) ==
          "grad: gradients of gradients are not offered: expected create_graph false, got true");
    CHECK(!input.grad().defined());
  };
  for (const PoolKind& pool : kSliding)
    check(pool, {{"kernel_size", 2}, {"stride", 2}}, with_extents({10, 6}, pool.dims));
  for (const PoolKind& pool : kAdaptive) check(pool, {{"output_size", 2}}, with_extents({3, 2}, pool.dims));
}

TEST_CASE("negative extents are refused at the first (CVE-2022-35968, CVE-2022-35959)", "[fault-34]") {
  const std::int64_t bad = -536870912;
  CHECK(message_of([&] {
          zeros({bad, bad, bad, bad});
        }) == "shape: extents must not be negative: expected >= 0, got -536870912 in dimension 0");
  CHECK(message_of([&] {
          zeros({3, 2, bad, bad});
        }) == "shape: extents must not be negative: expected >= 0, got -536870912 in dimension 2");
}

TEST_CASE("an adaptive output of no or too many extents is refused (pytorch 42509, 42578)", "[fault-54]") {
  for (const PoolKind& pool : kAdaptive)
    for (const json& list : {json::array(), json::array({2, 2, 2, 2})}) {
      INFO(pool.type << " with " << list);
      const std::string errors = pool.errors_in_json(with_extents({2, 2}, pool.dims), {{"output_size", list}});
      CHECK(errors.find("error: /layers/0/output_size (layer ") != std::string::npos);
      CHECK_THROWS_WITH(test::options_from(pool.layer(), {{"output_size", list}}),
                        Catch::Matchers::StartsWith("output_size: expected "));
    }
}

TEST_CASE("negative adaptive output sizes are refused (pytorch 70232, 89343, 83062)", "[fault-55]") {
  for (const PoolKind& pool : kAdaptive) {
    INFO(pool.op);
    CHECK(pool.refusal(with_extents({1, 64}, pool.dims), {{"output_size", last(pool.dims, -2, 3)}}) ==
          "output_size must not be negative: expected >= 0, got -2" + in_dimension(pool, pool.dims - 1));
    CHECK(pool.refusal(with_extents({16, 9}, pool.dims),
                       {{"output_size", last(pool.dims, -274877906944, 576460752303423488)}}) ==
          "output_size must not be negative: expected >= 0, got -274877906944" + in_dimension(pool, pool.dims - 1));
  }
}

TEST_CASE("enormous adaptive output sizes overflow before memory is taken (pytorch 42582, 73183, 107548)",
          "[fault-57]") {
  for (const PoolKind& pool : kAdaptive)
    for (const std::int64_t size :
         {std::int64_t{9132760301568586890}, std::int64_t{0x3FFFFFFFFFFFFFFF}, std::int64_t{1250999896765}, kLargest}) {
      if (pool.dims == 1 && size < std::int64_t{1} << 60) continue;
      INFO(pool.op << " to " << size);
      const std::string sentence = message_of([&] {
        pool(ones(with_extents({2, 3}, pool.dims, 2)), {{"output_size", size}});
      });
      CHECK(sentence.find("overflows 64 bits: expected ") != std::string::npos);
      CHECK_FALSE(pool.errors_in_json(with_extents({2, 3}, pool.dims, 2), {{"output_size", size}}).empty());
    }
}

TEST_CASE("whole numbers are refused with a word about it") {
  const auto check = [](const PoolKind& pool, const json& options) {
    CHECK(message_of([&] {
            pool(ones(with_extents({2, 3}, pool.dims), DType::int64), options);
          }) == std::string(pool.op) +
                    ": element type not supported: expected float32 or float64, got int64; convert with to()");
  };
  for (const PoolKind& pool : kSliding) check(pool, {{"kernel_size", 2}});
  for (const PoolKind& pool : kAdaptive) check(pool, {{"output_size", 2}});
}
