#include <cmath>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/nn/norm.hpp"
#include "taper/ops.hpp"

using namespace taper;
namespace F = taper::nn::functional;
using test::message_of;

// Faults of other frameworks with normalisation, tried on every kind. The tag is the row of the list in
// tests/faults/README.md.

namespace {

struct NormFunction {
  const char* name;
  Tensor (*call)(const Tensor& x, const Tensor& weight, const Tensor& bias);
};

Tensor statistics(const Tensor& x, double value) { return full({x.size(1)}, value); }

const NormFunction kChannelNorms[] = {
    {"batch_norm in training",
     [](const Tensor& x, const Tensor& w, const Tensor& b) {
       return F::batch_norm(x, Tensor(), Tensor(), w, b, {.training = true});
     }},
    {"batch_norm", [](const Tensor& x, const Tensor& w,
                      const Tensor& b) { return F::batch_norm(x, statistics(x, 0), statistics(x, 1), w, b); }},
    {"instance_norm",
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return F::instance_norm(x, Tensor(), Tensor(), w, b); }},
    {"group_norm", [](const Tensor& x, const Tensor& w, const Tensor& b) { return F::group_norm(x, 2, w, b); }},
};
const NormFunction kRowNorms[] = {
    {"layer_norm",
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return F::layer_norm(x, {x.size(-1)}, w, b); }},
    {"rms_norm", [](const Tensor& x, const Tensor& w, const Tensor&) { return F::rms_norm(x, {x.size(-1)}, w); }},
};

}  // namespace

TEST_CASE("a scale or shift of another length than the channels is refused (CVE-2021-29583)", "[fault-85]") {
  const Tensor x = ones({3, 6, 5}), rows = ones({3, 5, 6});
  const auto refused = [](const NormFunction& norm, const Tensor& input, bool bias) {
    for (const std::int64_t n : {0, 1, 5, 7}) {
      INFO(norm.name << " with " << n);
      const std::string of_weight = message_of([&] { norm.call(input, ones({n}), Tensor()); });
      CHECK(of_weight.find("weight") != std::string::npos);
      CHECK(of_weight.find(": expected [6], got [" + std::to_string(n) + "]") != std::string::npos);
      if (!bias) continue;
      const std::string of_bias = message_of([&] { norm.call(input, ones({6}), ones({n})); });
      CHECK(of_bias.find("bias") != std::string::npos);
      CHECK(of_bias.find(": expected [6], got [" + std::to_string(n) + "]") != std::string::npos);
    }
  };
  for (const NormFunction& norm : kChannelNorms) refused(norm, x, true);
  for (const NormFunction& norm : kRowNorms) refused(norm, rows, std::string(norm.name) != "rms_norm");
}

TEST_CASE("an input of no elements is never divided by (CVE-2021-29555)", "[fault-85]") {
  const auto empty_or_refused = [](const NormFunction& norm, const Shape& shape) {
    INFO(norm.name << " of " << to_string(shape));
    const Tensor x = zeros(shape).requires_grad_();
    std::string sentence = "no error";
    try {
      const Tensor y = norm.call(x, Tensor(), Tensor());
      CHECK(y.shape() == shape);
      y.sum().backward();
      CHECK(x.grad().shape() == shape);
    } catch (const Error& e) {
      sentence = e.what();
      CHECK(sentence.find(": expected ") != std::string::npos);
    }
  };
  for (const Shape& shape : {Shape{1, 2, 1, 0}, Shape{0, 2, 3}, Shape{3, 2, 0}, Shape{0, 2, 0}, Shape{1, 0, 3}})
    for (const std::span<const NormFunction> list :
         {std::span<const NormFunction>(kChannelNorms), std::span<const NormFunction>(kRowNorms)})
      for (const NormFunction& norm : list) empty_or_refused(norm, shape);
}

TEST_CASE("values that are all alike give the shift, not NaN") {
  for (const NormFunction& norm : kChannelNorms) {
    INFO(norm.name);
    const Tensor x = full({3, 4, 5}, 1e6), b = tensor({1.5, -2.5, 3.5, 0.25});
    const Tensor y = norm.call(x, full({4}, 2), b);
    for (const float value : y.to_vector<float>()) CHECK(std::isfinite(value));
    if (std::string(norm.name) != "batch_norm")
      CHECK(y.select(0, 1).select(1, 2).to_vector<float>() == b.to_vector<float>());
  }
}
