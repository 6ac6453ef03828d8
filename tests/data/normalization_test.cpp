#include <cmath>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/data.hpp"

using namespace taper;
using data::Normalization;
using data::Normalize;
using Floats = std::vector<float>;

TEST_CASE("standard scores have the mean and the population's deviation of each channel") {
  // Channel 0: 1 3 5 7, mean 4, deviation sqrt 5; channel 1: 2 2 2 6, mean 3, deviation sqrt 3.
  const Tensor x = tensor({{{1.0, 3.0}, {2.0, 2.0}}, {{5.0, 7.0}, {2.0, 6.0}}});
  const Normalization n = Normalization::fit(Normalize::standard, x);
  CHECK(n.shift.to_vector<float>() == Floats{4, 3});
  CHECK(n.scale.to_vector<float>() == Floats{std::sqrt(5.0f), std::sqrt(3.0f)});
  const Floats y = n.apply(x).to_vector<float>();
  CHECK(y[0] == Approx(-3 / std::sqrt(5.0)));
  CHECK(y[7] == Approx(3 / std::sqrt(3.0)));
}

TEST_CASE("minmax maps the training samples to 0..1") {
  const Tensor x = tensor({{2.0, -1.0, 0.0}, {4.0, 3.0, 10.0}});
  const Normalization n = Normalization::fit(Normalize::minmax, x);
  CHECK(n.apply(x).to_vector<float>() == Floats{0, 0, 0, 1, 1, 1});
  CHECK(n.apply(tensor({{6.0, 1.0, 5.0}})).to_vector<float>() == Floats{2, 0.5, 0.5});
}

TEST_CASE("a constant channel has scale 1 and becomes exactly 0") {
  const Tensor x = full({7, 3, 5}, 0.1);
  for (const Normalize kind : {Normalize::standard, Normalize::minmax}) {
    const Normalization n = Normalization::fit(kind, x);
    CHECK(n.scale.to_vector<float>() == Floats{1, 1, 1});
    for (const float value : n.apply(x).to_vector<float>()) CHECK(value == 0);
  }
}

TEST_CASE("one sample and extremes of float32 give finite numbers") {
  const Tensor x = tensor({{-3e38, 1e-44}, {3e38, 0.0}});
  for (const Normalize kind : {Normalize::standard, Normalize::minmax})
    for (const float value : Normalization::fit(kind, x).apply(x).to_vector<float>()) CHECK(std::isfinite(value));
  const Tensor one = tensor({{5.0, 6.0}});
  CHECK(Normalization::fit(Normalize::standard, one).apply(one).to_vector<float>() == Floats{0, 0});
}

TEST_CASE("no normalisation leaves the samples as they are") {
  const Normalization n = Normalization::fit(Normalize::none, zeros({2, 3}));
  CHECK_FALSE(n.shift.defined());
  CHECK(n.apply(tensor({{1.0, 2.0}})).to_vector<float>() == Floats{1, 2});
}

TEST_CASE("samples with other channels than the training's are refused") {
  const Normalization n = Normalization::fit(Normalize::standard, zeros({2, 3, 5}));
  CHECK(test::message_of([&] {
          n.apply(zeros({4, 5, 3}));
        }) == "normalization: channels differ: expected [N, 3, ...], got [4, 5, 3]");
}
