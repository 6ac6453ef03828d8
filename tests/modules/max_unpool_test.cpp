#include "taper/nn/max_unpool.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "support/spread.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/max_pool.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::message_of;
using test::row;
namespace F = taper::nn::functional;
using Values = std::vector<double>;

namespace {

Tensor places(const std::vector<std::int64_t>& at, const Shape& shape = {}) {
  const Tensor indices = from_data(at, {1, std::int64_t(at.size())});
  return shape.rank() == 0 ? indices : indices.reshape(shape);
}

}  // namespace

TEST_CASE("unpooling undoes a max pool but for what was not chosen") {
  const Tensor x = row({1, 5, 2, 4, 3, 6});
  const auto [values, indices] = F::max_pool1d_with_indices(x, {.kernel_size = 2});
  CHECK(F::max_unpool1d(values, indices, {.kernel_size = 2}).to_vector<double>() == Values{0, 5, 0, 4, 0, 6});
}

TEST_CASE("pooling again what was unpooled gives the same values, in one, two and three dimensions") {
  const Tensor x = exp(test::spread({2, 3, 6, 10, 14}));
  const auto same = [](const Tensor& a, const Tensor& b) {
    return test::same_bits(a.to_vector<double>(), b.to_vector<double>());
  };
  const auto one = F::max_pool1d_with_indices(x.reshape({36, 10, 14}), {.kernel_size = 7});
  CHECK(same(F::max_pool1d(F::max_unpool1d(one.values, one.indices, {.kernel_size = 7}), {.kernel_size = 7}),
             one.values));
  const auto two = F::max_pool2d_with_indices(x.reshape({6, 6, 10, 14}), {.kernel_size = {5, 2}});
  CHECK(same(F::max_pool2d(F::max_unpool2d(two.values, two.indices, {.kernel_size = {5, 2}}), {.kernel_size = {5, 2}}),
             two.values));
  const auto three = F::max_pool3d_with_indices(x, {.kernel_size = {3, 2, 7}});
  const Tensor back = F::max_unpool3d(three.values, three.indices, {.kernel_size = {3, 2, 7}});
  CHECK(back.shape() == x.shape());
  CHECK(same(F::max_pool3d(back, {.kernel_size = {3, 2, 7}}), three.values));
}

TEST_CASE("an output size may differ from the usual one by less than the stride") {
  const Tensor x = row({1, 2, 3}), at = places({0, 2, 4});
  for (const std::int64_t size : {5, 6, 7}) {
    const Tensor y = F::max_unpool1d(x, at, {.kernel_size = 2, .output_size = size});
    CHECK(y.shape() == Shape({1, size}));
    CHECK(y.narrow(1, 0, 5).to_vector<double>() == Values{1, 0, 2, 0, 3});
    CHECK(nn::MaxUnpool1d({.kernel_size = 2}).forward(x, at, size).shape() == y.shape());
  }
  const auto refused = [&](std::int64_t size) {
    return message_of([&] { F::max_unpool1d(x, at, {.kernel_size = 2, .output_size = size}); });
  };
  CHECK(refused(4) == "max_unpool1d: output_size does not fit the input: expected 5 to 7, got 4; input size 3");
  CHECK(refused(8) == "max_unpool1d: output_size does not fit the input: expected 5 to 7, got 8; input size 3");
  CHECK(message_of([&] {
          F::max_unpool2d(ones({1, 2, 3}), zeros({1, 2, 3}, DType::int64), {.kernel_size = 2, .output_size = {4, 8}});
        }) == "max_unpool2d: output_size does not fit the input: expected 5 to 7, got 8 in dimension 1; input size 3");
}

TEST_CASE("unpooling sends gradients back to where the elements came from") {
  const Tensor x = test::spread({2, 3, 2, 5}).requires_grad_();
  Tensor indices = zeros({2, 3, 2, 5}, DType::int64);
  for (std::int64_t i = 0; i < indices.numel(); ++i) indices.data<std::int64_t>()[i] = 13 * i % 41;
  const auto report = autograd::gradcheck(
      [&](const std::vector<Tensor>& in) {
        return F::max_unpool2d(in[0], indices, {.kernel_size = {3, 2}, .stride = {4, 1}});
      },
      {x});
  INFO(report.to_string());
  CHECK(report.ok);
  const Tensor twice = row({1, 2}).requires_grad_();
  const Tensor y = F::max_unpool1d(twice, places({3, 3}), {.kernel_size = 2});
  CHECK(y.to_vector<double>() == Values{0, 0, 0, 2});
  y.backward(row({3, 5, 7, 11}));
  CHECK(twice.grad().to_vector<double>() == Values{11, 11});
}

TEST_CASE("unpooling an empty batch gives an empty result of the right shape") {
  const Tensor y = F::max_unpool2d(ones({0, 3, 2, 5}), zeros({0, 3, 2, 5}, DType::int64), {.kernel_size = {2, 3}});
  CHECK(y.shape() == Shape({0, 3, 4, 15}));
}

TEST_CASE("the sizes of the padded and strided pool are undone") {
  const Tensor x = ones({2, 3, 4}), at = zeros({2, 3, 4}, DType::int64);
  CHECK(F::max_unpool1d(x, at, {.kernel_size = 3, .stride = 2, .padding = 1}).shape() == Shape({2, 3, 7}));
  CHECK(F::max_unpool1d(x, at, {.kernel_size = 5, .stride = 1, .padding = 2}).shape() == Shape({2, 3, 4}));
  CHECK(F::max_unpool1d(x.select(0, 0), at.select(0, 0), {.kernel_size = 2}).shape() == Shape({3, 8}));
}

TEST_CASE("unpooling refuses options that no input could make valid, in the function and in the constructor") {
  const Tensor x = ones({2, 3, 5, 7}), at = zeros({2, 3, 5, 7}, DType::int64);
  const auto refused = [&](const nn::MaxUnpool2dOptions& o, const std::string& function,
                           const std::string& constructor) {
    CHECK(message_of([&] { F::max_unpool2d(x, at, o); }) == function);
    CHECK(message_of([&] { nn::MaxUnpool2d{o}; }) == constructor);
  };
  refused({.kernel_size = {2, 0}}, "max_unpool2d: kernel_size must be positive: expected >= 1, got 0 in dimension 1",
          "MaxUnpool2d: kernel_size is out of range: expected >= 1, got 0");
  refused({.kernel_size = 2, .stride = 0}, "max_unpool2d: stride must be positive: expected >= 1, got 0",
          "MaxUnpool2d: stride is out of range: expected >= 1, got 0");
  refused({.kernel_size = 2, .padding = {0, -1}},
          "max_unpool2d: padding must not be negative: expected >= 0, got -1 in dimension 1",
          "MaxUnpool2d: padding is out of range: expected >= 0, got -1");
  refused({.kernel_size = 2, .output_size = {3, 0}}, "max_unpool2d: output_size must be positive: expected >= 1, got 0",
          "MaxUnpool2d: output_size is out of range: expected >= 1, got 0");
}

TEST_CASE("unpooling refuses inputs that do not fit") {
  const auto refused = [](const Tensor& x, const Tensor& at, const nn::MaxUnpool1dOptions& o) {
    return message_of([&] { F::max_unpool1d(x, at, o); });
  };
  const Tensor x = ones({2, 3, 5}), at = zeros({2, 3, 5}, DType::int64);
  CHECK(refused(x, zeros({2, 3, 7}, DType::int64), {.kernel_size = 2}) ==
        "max_unpool1d: indices do not fit the input: expected [2, 3, 5], got [2, 3, 7]");
  CHECK(refused(x, zeros({2, 3, 5}), {.kernel_size = 2}) ==
        "max_unpool1d: indices must be whole numbers: expected int64, got float32");
  CHECK(refused(at, at, {.kernel_size = 2}) ==
        "max_unpool1d: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK(refused(ones({2, 3, 5, 7}), at, {.kernel_size = 2}) ==
        "max_unpool1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D [2, 3, 5, 7]");
  CHECK(refused(ones({2, 3, 0}), zeros({2, 3, 0}, DType::int64), {.kernel_size = 2}) ==
        "max_unpool1d: input size must be positive: expected >= 1, got 0");
  CHECK(refused(ones({2, 0, 5}), zeros({2, 0, 5}, DType::int64), {.kernel_size = 2}) ==
        "max_unpool1d: no channels: expected >= 1, got 0 in [2, 0, 5]");
  CHECK(refused(ones({3, 1}), zeros({3, 1}, DType::int64), {.kernel_size = 2, .padding = 1}) ==
        "max_unpool1d: output size is too small: expected >= 1, got 0; input size 1, kernel_size 2, stride 2, padding "
        "1");
  CHECK(refused(x, at, {.kernel_size = 2, .stride = INT64_MAX}) ==
        "max_unpool1d: output size overflows 64 bits: expected a size below 2^63, got input size 5 and stride "
        "9223372036854775807");
  nn::MaxUnpool1d layer({.kernel_size = 2});
  const Tensor three[] = {x, at, at};
  CHECK(message_of([&] { layer(x); }) == "MaxUnpool1d: takes an input and its indices: expected 2, got 1");
  CHECK(message_of([&] { layer.forward_all(three); }) ==
        "MaxUnpool1d: takes an input and its indices: expected 2, got 3");
}

TEST_CASE("CVE-2021-29570 family: every index is checked before it is used", "[fault-38]") {
  const auto refused = [](std::int64_t bad) {
    return message_of([&] {
      F::max_unpool2d(ones({2, 1, 1, 3}), places({0, 8, 5, 1, bad, 2}, {2, 1, 1, 3}),
                      {.kernel_size = 3, .output_size = {3, 9}});
    });
  };
  CHECK(refused(26) == "no error");
  CHECK(refused(27) == "max_unpool2d: index out of range: expected 0 to 26, got 27 for element 4");
  CHECK(refused(-1) == "max_unpool2d: index out of range: expected 0 to 26, got -1 for element 4");
  CHECK(refused(INT64_MIN) ==
        "max_unpool2d: index out of range: expected 0 to 26, got -9223372036854775808 for element 4");
  // The public trigger: index 13 for a plane of 9.
  CHECK(message_of([&] {
          F::max_unpool1d(ones({1, 3}), places({0, 13, 6}), {.kernel_size = 3});
        }) == "max_unpool1d: index out of range: expected 0 to 8, got 13 for element 1");
  CHECK(message_of([&] {
          F::max_unpool3d(ones({1, 1, 1, 1}), places({8}, {1, 1, 1, 1}), {.kernel_size = 2});
        }) == "max_unpool3d: index out of range: expected 0 to 7, got 8 for element 0");
}

TEST_CASE("pytorch 197888: indices that are a view of others are read as they stand there", "[fault-42]") {
  const Tensor all = from_data(std::vector<std::int64_t>{9, 9, 0, 2, 5, 9, 1, 3, 4, 9}, {2, 5});
  const Tensor at = all.narrow(1, 1, 3).transpose(0, 1).transpose(0, 1).narrow(0, 1, 1);
  CHECK(F::max_unpool1d(row({7, 8, 9}), at, {.kernel_size = 2}).to_vector<double>() == Values{0, 7, 0, 8, 9, 0});
}

TEST_CASE("an unpooling layer applies its function, infers its shape and prints all its options") {
  nn::MaxUnpool3d layer({.kernel_size = {2, 3, 1}, .output_size = {4, 9, 5}});
  const Tensor x = ones({2, 3, 2, 3, 5}), at = zeros({2, 3, 2, 3, 5}, DType::int64);
  CHECK(layer.forward(x, at).shape() == Shape({2, 3, 4, 9, 5}));
  auto options = layer.options();
  const Shape shapes[] = {x.shape(), at.shape()}, others[] = {x.shape(), x.shape().with(4, 7)};
  CHECK(nn::MaxUnpool3d::infer(options, shapes) == Shape({2, 3, 4, 9, 5}));
  CHECK(message_of([&] { nn::MaxUnpool3d::infer(options, others); }) ==
        "max_unpool3d: indices do not fit the input: expected [N, 3, 2, 3, 5], got [N, 3, 2, 3, 7]");
  CHECK(layer.to_string() == "MaxUnpool3d(kernel_size=[2, 3, 1], stride=null, padding=0, output_size=[4, 9, 5])");
}
