#include "support/catch.hpp"
#include "support/max_pools.hpp"
#include "taper/creation.hpp"

// What max pools refuse: the sentences of the function, of the layer's constructor and of a JSON config, in full.
using namespace taper;
using test::invalid;
using test::message_of;
using test::out_of_range;
using test::pooled;
using test::Refusal;
using test::refusal_of;
using test::unfit;
namespace F = taper::nn::functional;
using M1 = nn::MaxPool1dOptions;
using M2 = nn::MaxPool2dOptions;
using M3 = nn::MaxPool3dOptions;
using A1 = nn::AdaptiveMaxPool1dOptions;
using A2 = nn::AdaptiveMaxPool2dOptions;
using A3 = nn::AdaptiveMaxPool3dOptions;

namespace {

/// Inputs and how messages show their samples, for pools of each number of dimensions.
const Shape kInputs[] = {{2, 3, 5}, {2, 3, 5, 7}, {2, 3, 5, 7, 11}};
const char* const kSamples[] = {"[3, 5]", "[3, 5, 7]", "[3, 5, 7, 11]"};

/// Calls `check.operator()<O>(input, sample)` for the options of each sliding pool.
template <class Check>
void for_each_sliding(const Check& check) {
  check.template operator()<M1>(kInputs[0], kSamples[0]);
  check.template operator()<M2>(kInputs[1], kSamples[1]);
  check.template operator()<M3>(kInputs[2], kSamples[2]);
}
template <class Check>
void for_each_adaptive(const Check& check) {
  check.template operator()<A1>(kInputs[0], kSamples[0]);
  check.template operator()<A2>(kInputs[1], kSamples[1]);
  check.template operator()<A3>(kInputs[2], kSamples[2]);
}

/// "5" or "[5, 5]": a number for every dimension, as messages list it.
template <class O>
std::string listed(const std::string& number) {
  std::string text = number;
  for (int d = 1; d < O::kDims; ++d) text += ", " + number;
  return O::kDims == 1 ? text : "[" + text + "]";
}

Refusal all_three(const std::string& function, const std::string& json) { return {function, function, json}; }

}  // namespace

TEST_CASE("a max pool refuses a stride of 0") {
  for_each_sliding([]<class O>(const Shape& input, const char*) {
    CHECK(refusal_of<O>(R"("kernel_size": 3, "stride": 0)", input) ==
          out_of_range<O>("stride", "must be positive: expected >= 1, got 0"));
  });
  CHECK(refusal_of<M2>(R"("kernel_size": 3, "stride": 0)", {2, 64, 32, 32}) ==
        out_of_range<M2>("stride", "must be positive: expected >= 1, got 0"));
  CHECK(refusal_of<M3>(R"("kernel_size": 1, "stride": [1, 1, 0])", {1, 1, 2, 3, 5}) ==
        out_of_range<M3>("stride", "must be positive: expected >= 1, got 0", " in dimension 2"));
}

TEST_CASE("a max pool refuses a kernel size of 0 or below") {
  for_each_sliding([]<class O>(const Shape& input, const char*) {
    for (const char* size : {"0", "-1"})
      CHECK(refusal_of<O>(std::string("\"kernel_size\": ") + size, input) ==
            out_of_range<O>("kernel_size", std::string("must be positive: expected >= 1, got ") + size));
  });
  for (const char* size : {"0", "-1"})
    CHECK(refusal_of<M3>(std::string(R"("stride": 1, "kernel_size": [2, 2, )") + size + "]", {3, 12, 4, 10, 11}) ==
          out_of_range<M3>("kernel_size", std::string("must be positive: expected >= 1, got ") + size,
                           " in dimension 2"));
}

TEST_CASE("a max pool refuses a kernel size that is no integer of 64 bits") {
  for_each_sliding([]<class O>(const Shape& input, const char*) {
    const std::string expected =
        "expected an integer" + std::string(O::kDims > 1 ? " or a list of " + std::to_string(O::kDims) : "") + ", got ";
    const std::string place =
        std::string("error: /layers/0/kernel_size (layer ") + O::kType + " 0): expected an integer, got ";
    CHECK(refusal_of<O>(R"("kernel_size": 1e20)", input) ==
          all_three("kernel_size: " + expected + "1e+20", place + "1e20"));
    CHECK(refusal_of<O>(R"("kernel_size": 2.5)", input) ==
          all_three("kernel_size: " + expected + "2.5", place + "2.5"));
    CHECK(refusal_of<O>(R"("kernel_size": null)", input) ==
          all_three("kernel_size: " + expected + "null", place + "null"));
  });
}

TEST_CASE("a max pool refuses a window larger than the input and says all that made it so") {
  for_each_sliding([]<class O>(const Shape& input, const char*) {
    const Shape tiny = Shape{1, 1}.concat(O::kDims == 1 ? Shape{1} : O::kDims == 2 ? Shape{1, 1} : Shape{1, 1, 1});
    const auto sentence = [](const std::string& size, const std::string& kernel) {
      return "output size is too small: expected >= 1, got " + listed<O>("0") + "; input size " + size +
             ", kernel_size " + listed<O>(kernel) + ", stride " + listed<O>(kernel) + ", padding " + listed<O>("0") +
             ", dilation " + listed<O>("1");
    };
    std::string sample = "[1";
    for (int d = 0; d < O::kDims; ++d) sample += ", 1";
    CHECK(refusal_of<O>(R"("kernel_size": 2)", tiny) ==
          unfit<O>("kernel_size", sentence(listed<O>("1"), "2"), sample + "]"));
    const std::string sizes[] = {"5", "[5, 7]", "[5, 7, 11]"};
    CHECK(refusal_of<O>(R"("kernel_size": 17)", input).function ==
          test::function_name<O>() + ": " + sentence(sizes[O::kDims - 1], "17"));
  });
}

TEST_CASE("a max pool refuses padding beyond half the kernel, negative padding and a dilation of 0") {
  for_each_sliding([]<class O>(const Shape& input, const char* sample) {
    CHECK(refusal_of<O>(R"("kernel_size": 3, "padding": 2)", input) ==
          invalid<O>("padding", "padding must be at most half the kernel size: expected <= 1, got 2", sample));
    // Not half of what a dilation makes of it.
    CHECK(refusal_of<O>(R"("kernel_size": 3, "padding": 2, "dilation": 2)", input) ==
          invalid<O>("padding", "padding must be at most half the kernel size: expected <= 1, got 2", sample));
    CHECK(refusal_of<O>(R"("kernel_size": 3, "padding": -1)", input) ==
          out_of_range<O>("padding", "must not be negative: expected >= 0, got -1"));
    CHECK(refusal_of<O>(R"("kernel_size": 3, "dilation": 0)", input) ==
          out_of_range<O>("dilation", "must be positive: expected >= 1, got 0"));
  });
  CHECK(refusal_of<M2>(R"("kernel_size": [3, 2], "padding": [1, 2])", {2, 3, 5, 7}) ==
        invalid<M2>("padding", "padding must be at most half the kernel size: expected <= 1, got 2 in dimension 1",
                    "[3, 5, 7]"));
}

TEST_CASE("a max pool refuses a dilated kernel beyond 64 bits") {
  for_each_sliding([]<class O>(const Shape& input, const char* sample) {
    CHECK(refusal_of<O>(R"("kernel_size": 1250999896764, "dilation": 1250999896764)", input) ==
          invalid<O>("dilation",
                     "dilated kernel overflows 64 bits: expected dilation * (kernel_size - 1) + 1 below 2^63, got "
                     "dilation 1250999896764 and kernel_size 1250999896764" +
                         std::string(O::kDims > 1 ? " in dimension 0" : ""),
                     sample));
  });
}

TEST_CASE("of a huge kernel and a negative stride, a max pool names the stride") {
  for_each_sliding([]<class O>(const Shape& input, const char*) {
    CHECK(refusal_of<O>(R"("kernel_size": 9223372036854775807, "stride": -1, "ceil_mode": true)", input) ==
          out_of_range<O>("stride", "must be positive: expected >= 1, got -1"));
  });
}

TEST_CASE("max pools refuse another number of dimensions") {
  CHECK(message_of([] {
          ones({9, 15, 0, 2772747373535906632, 0, 14});
        }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 2772747373535906632 in "
        "dimension 3");
  const char* const expected[] = {"2-D unbatched or 3-D", "3-D unbatched or 4-D", "4-D unbatched or 5-D"};
  const auto sentence = [&](const std::string& function, int dims) {
    return function + ": wrong number of dimensions: expected " + expected[dims - 1] +
           " batched input, got 6-D [9, 15, 0, 2, 0, 14]";
  };
  const Tensor odd = ones({9, 15, 0, 2, 0, 14});
  for_each_sliding([&]<class O>(const Shape&, const char*) {
    CHECK(message_of([&] { pooled(odd, test::options_of<O>("\"kernel_size\": 1")); }) ==
          sentence(test::function_name<O>(), O::kDims));
  });
  for_each_adaptive([&]<class O>(const Shape&, const char*) {
    CHECK(message_of([&] { pooled(odd, test::options_of<O>("\"output_size\": 1")); }) ==
          sentence(test::function_name<O>(), O::kDims));
  });
  const std::string function = "max_pool1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, ";
  CHECK(refusal_of<M1>(R"("kernel_size": 2)", {2, 3, 5, 7}) ==
        Refusal{function + "got 4-D [2, 3, 5, 7]", "no error",
                "error: /layers/0 (layer MaxPool1d 0): " + function +
                    "got 4-D [1, 3, 5, 7]; shapes: input [3, 5, 7] -> MaxPool1d"});
}

TEST_CASE("a negative output size of a max pool is refused and shown") {
  const auto sentence = [](const std::string& out, const std::string& in, const std::string& k, const std::string& s,
                           const std::string& p, const std::string& d) {
    return "output size is too small: expected >= 1, got " + out + "; input size " + in + ", kernel_size " + k +
           ", stride " + s + ", padding " + p + ", dilation " + d;
  };
  CHECK(refusal_of<M1>(R"("kernel_size": 4, "stride": 1, "ceil_mode": true)", {20, 16, 1}) ==
        unfit<M1>("kernel_size", sentence("-2", "1", "4", "1", "0", "1"), "[16, 1]"));
  CHECK(refusal_of<M2>(R"("kernel_size": [4, 1], "stride": 1, "ceil_mode": true)", {20, 16, 1, 3}) ==
        unfit<M2>("kernel_size", sentence("[-2, 3]", "[1, 3]", "[4, 1]", "[1, 1]", "[0, 0]", "[1, 1]"), "[16, 1, 3]"));
}

TEST_CASE("a dilation that steps over the whole input is refused: PyTorch's index lies outside the plane") {
  for_each_sliding([]<class O>(const Shape& input, const char* sample) {
    CHECK(refusal_of<O>(R"("kernel_size": 2, "padding": 1, "dilation": 6, "stride": 7)", input) ==
          unfit<O>("padding",
                   "first window holds padding alone: expected a position below input size 5, got 5; padding 1, "
                   "dilation 6" +
                       std::string(O::kDims > 1 ? " in dimension 0" : ""),
                   sample));
  });
}

TEST_CASE("max pools refuse integers with the way to convert them") {
  for_each_sliding([]<class O>(const Shape& input, const char*) {
    CHECK(message_of([&] { pooled(zeros(input, DType::int64), test::options_of<O>("\"kernel_size\": 2")); }) ==
          test::function_name<O>() +
              ": element type not supported: expected float32 or float64, got int64; convert with to()");
  });
  for_each_adaptive([]<class O>(const Shape& input, const char*) {
    CHECK(message_of([&] { pooled(zeros(input, DType::int64), test::options_of<O>("\"output_size\": 2")); }) ==
          test::function_name<O>() +
              ": element type not supported: expected float32 or float64, got int64; convert with to()");
  });
}

TEST_CASE("a max pool refuses lists of another length than the number of dimensions") {
  CHECK(refusal_of<M2>(R"("kernel_size": [2, 3, 5])", {1, 1, 5, 7}) ==
        all_three("kernel_size: expected a list of 2 integers, got 3 in [2, 3, 5]",
                  "error: /layers/0/kernel_size (layer MaxPool2d 0): expected a list of 2 integers, got 3 in [2, 3, "
                  "5]"));
  CHECK(message_of([] {
          F::max_pool2d(ones({3, 5, 7}), {.kernel_size = {2, 3, 5}});
        }) == "sizes: one number for all places or one for each: expected 1 or 2, got 3");
}
TEST_CASE("an empty output size of an adaptive max pool is refused") {
  const auto refusal = [](const std::string& type, const std::string& expected) {
    const std::string text = "expected " + expected + ", got 0 in []";
    return Refusal{"output_size: " + text, "output_size: " + text,
                   "error: /layers/0/output_size (layer " + type + " 0): " + text};
  };
  CHECK(refusal_of<A1>(R"("output_size": [])", {2, 2, 2}) == refusal("AdaptiveMaxPool1d", "a list of 1 integers"));
  CHECK(refusal_of<A2>(R"("output_size": [])", {2, 2, 2, 2}) ==
        refusal("AdaptiveMaxPool2d", "a list of 2 integers or nulls"));
  CHECK(refusal_of<A3>(R"("output_size": [])", {2, 2, 2, 2, 2}) ==
        refusal("AdaptiveMaxPool3d", "a list of 3 integers or nulls"));
}

TEST_CASE("a negative output size of an adaptive max pool is refused") {
  CHECK(refusal_of<A1>(R"("output_size": -2)", {1, 64, 8}) ==
        out_of_range<A1>("output_size", "must not be negative: expected >= 0, got -2"));
  CHECK(refusal_of<A2>(R"("output_size": [576460752303423488, -274877906944])", {16, 960, 4, 4}) ==
        out_of_range<A2>("output_size", "must not be negative: expected >= 0, got -274877906944", " in dimension 1"));
  CHECK(refusal_of<A3>(R"("output_size": [2, null, -1])", {2, 3, 4, 5, 6}) ==
        out_of_range<A3>("output_size", "must not be negative: expected >= 0, got -1", " in dimension 2"));
}

TEST_CASE("an output of an adaptive max pool of more elements than 64 bits count is refused") {
  const auto sentence = [](const std::string& size, int dimension) {
    return "shape: number of elements overflows 64 bits: expected a product below 2^63, got " + size +
           " in dimension " + std::to_string(dimension);
  };
  CHECK(refusal_of<A1>(R"("output_size": 9132760301568586890)", {2, 2, 2}).function ==
        sentence("9132760301568586890", 2));
  CHECK(refusal_of<A1>(R"("output_size": 4611686018427387903)", {2, 2, 2}).function ==
        sentence("4611686018427387903", 2));
  CHECK(refusal_of<A2>(R"("output_size": [1250999896765, 1250999896764])", {128, 1024, 4, 4}) ==
        Refusal{sentence("1250999896764", 3), "no error",
                "error: /layers/0 (layer AdaptiveMaxPool2d 0): " + sentence("1250999896764", 3) +
                    "; shapes: input [1024, 4, 4] -> AdaptiveMaxPool2d"});
  CHECK(refusal_of<A3>(R"("output_size": 1879048192)", {2, 3, 5, 3, 7}).function == sentence("1879048192", 3));
  // Fewer elements than that, but more bytes.
  CHECK(message_of([] { F::adaptive_max_pool1d(ones({1, 2}), {.output_size = 4611686018427387903}); }) != "no error");
}

TEST_CASE("max pools refuse an empty spatial extent and no channels") {
  CHECK(refusal_of<A2>(R"("output_size": 1)", {2, 3, 0, 7}).function ==
        "adaptive_max_pool2d: input size must be positive: expected >= 1, got 0 in dimension 0");
  CHECK(refusal_of<A1>(R"("output_size": 0)", {2, 3, 0}).function ==
        "adaptive_max_pool1d: input size must be positive: expected >= 1, got 0");
  CHECK(refusal_of<A3>(R"("output_size": 2)", {2, 0, 5, 7, 3}).function ==
        "adaptive_max_pool3d: no channels: expected >= 1, got 0 in [2, 0, 5, 7, 3]");
  CHECK(refusal_of<nn::MaxPool1dOptions>(R"("kernel_size": 2)", {2, 3, 0}).function ==
        "max_pool1d: input size must be positive: expected >= 1, got 0");
  CHECK(refusal_of<nn::MaxPool2dOptions>(R"("kernel_size": 2)", {2, 0, 5, 7}).function ==
        "max_pool2d: no channels: expected >= 1, got 0 in [2, 0, 5, 7]");
  CHECK(refusal_of<A1>(R"("output_size": null)", {1, 64, 8}).function == "output_size: expected an integer, got null");
}
