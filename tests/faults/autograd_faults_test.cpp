#include <thread>

#include "base/memory.hpp"
#include "support/catch.hpp"
#include "support/in_place.hpp"
#include "support/kernel_check.hpp"
#include "support/layer_case.hpp"
#include "support/layer_variations.hpp"
#include "support/message_of.hpp"
#include "taper/autograd.hpp"
#include "taper/nn/loss.hpp"
#include "taper/ops.hpp"

using namespace taper;
using nlohmann::json;
using nn::LayerType;
using test::InPlace;
using test::kInPlace;

// Faults of other frameworks with recording and differentiation, tried on every layer and loss. The tag is the row of
// the list in tests/faults/README.md.

namespace {

using Inputs = std::vector<Tensor>;

/// A layer or a loss as a function of its inputs, made anew for every trial.
struct FaultSubject {
  std::string name;
  taper::Shared<nn::Module> module;
  Inputs inputs;  ///< leaves

  Tensor operator()(const Inputs& x) const { return test::call(*module, x); }
};

std::vector<FaultSubject> all_subjects() {
  std::vector<FaultSubject> subjects;
  for (const LayerType& type : nn::layer_types())
    for (const json& options : test::variations(type, 1))
      subjects.push_back(
          {type.name, test::build(type, options, DType::float64), test::random_inputs(type, DType::float64)});
  for (const nn::LossType& type : nn::loss_types()) {
    const Tensor scores = uniform({5, 3}, -1, 1, DType::float64).requires_grad_();
    const Tensor target = type.takes_classes ? tensor({2, 0, 1, 1, 2}) : uniform({5, 3}, 0, 1, DType::float64);
    subjects.push_back({type.name, type.make(type.new_options().get()), {scores, target}});
  }
  return subjects;
}

/// The gradients of all leaves after a backward from the sum of products with fixed numbers.
std::vector<double> gradients(const FaultSubject& subject) {
  std::vector<double> all;
  const auto take = [&](const Tensor& leaf) {
    if (!leaf.requires_grad() || !leaf.grad().defined()) return;
    const auto values = leaf.grad().to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  };
  for (const Tensor& input : subject.inputs) take(input);
  for (const Tensor& parameter : subject.module->parameters()) take(parameter);
  return all;
}

void drop_gradients(const FaultSubject& subject) {
  subject.module->zero_grad();
  for (const Tensor& input : subject.inputs) input.zero_grad();
}

/// Floating inputs as results of an operation, so that they may be changed in place.
Inputs recorded(const Inputs& leaves) {
  Inputs results;
  for (const Tensor& leaf : leaves) results.push_back(leaf.requires_grad() ? leaf * 1.0 : leaf);
  return results;
}

/// Changes one tensor of a recorded step in place. Backward must refuse, or not have needed it: give `expected`.
std::string trial(const FaultSubject& subject, const InPlace& in_place, std::size_t which,
                  const std::vector<double>& expected) {
  drop_gradients(subject);
  const Inputs inputs = recorded(subject.inputs);
  const Tensor y = subject(inputs);
  if (!y.requires_grad()) return "";
  Inputs touched = inputs;
  for (const Tensor& parameter : subject.module->parameters()) touched.push_back(parameter);
  touched.push_back(y);
  if (which >= touched.size() || !is_floating(touched[which].dtype())) return "";
  const Tensor kept = clone(touched[which].detach());
  {
    const NoGradGuard guard;
    in_place.change(touched[which]);
  }
  const std::string sentence = test::message_of([&] { y.backward(full_like(y, 0.75).detach()); });
  {
    const NoGradGuard guard;
    touched[which].copy_(kept);
  }
  if (sentence.find("saved was changed in place: expected version ") != std::string::npos) return "";
  if (sentence != "no error") return sentence;
  return test::same_bits(gradients(subject), expected) ? "" : "wrong gradients, and no error";
}

}  // namespace

TEST_CASE("a chain of a million operations is recorded, differentiated and freed (pytorch 5534, 109948, 155322)",
          "[fault-99]") {
  // The program taper-deep-chain does ten million on a stack of 256 KB.
  const auto baseline = detail::memory_stats().live_bytes;
  {
    const Tensor x = tensor({0.5, 0.25}, DType::float64).requires_grad_();
    Tensor y = x;
    for (int i = 0; i < 500'000; ++i) y = y + y * 1e-9;
    y.sum().backward();
    CHECK(x.grad().to_vector<double>()[0] == Approx(std::exp(500'000 * 1e-9)));
    Tensor undifferentiated = x;
    for (int i = 0; i < 500'000; ++i) undifferentiated = undifferentiated + 1.0;
  }
  CHECK(detail::memory_stats().live_bytes == baseline);
}

TEST_CASE("a loop of steps that keep their graph gives back its memory every time (pytorch 4661, 16744, 7343, 3818)",
          "[fault-100]") {
  const Tensor x = tensor({3.0}, DType::float64).requires_grad_();
  const auto step = [&] {
    const Tensor y = x * x;
    y.backward(Tensor(), true);
    y.backward();
    x.zero_grad();
  };
  step();
  const auto baseline = detail::memory_stats().live_bytes;
  for (int i = 0; i < 500'000; ++i) {
    step();
    if (detail::memory_stats().live_bytes != baseline) FAIL("leaks in round " << i);
  }
}

TEST_CASE("no layer or loss keeps memory, differentiated or not (pytorch 25340, 10222; oneflow 4707)", "[fault-101]") {
  for (const FaultSubject& subject : all_subjects()) {
    INFO(subject.name);
    const auto step = [&](bool differentiate) {
      const Tensor y = subject(subject.inputs);
      if (differentiate && y.requires_grad()) y.backward(ones_like(y).detach());
      drop_gradients(subject);
    };
    for (const bool differentiate : {false, true}) {
      step(differentiate);
      const auto baseline = detail::memory_stats().live_bytes;
      for (int i = 0; i < 3; ++i) step(differentiate);
      CHECK(detail::memory_stats().live_bytes == baseline);
    }
  }
}

TEST_CASE(
    "a value changed in place before backward is refused or was not needed, in every layer and loss (pytorch 14571)",
    "[fault-102]") {
  int refused_or_right = 0;
  for (const FaultSubject& subject : all_subjects()) {
    drop_gradients(subject);
    const Tensor y = subject(recorded(subject.inputs));
    if (!y.requires_grad()) continue;
    y.backward(full_like(y, 0.75).detach());
    const auto expected = gradients(subject);
    const std::size_t tensors = subject.inputs.size() + subject.module->parameters().size() + 1;
    for (const InPlace& in_place : kInPlace)
      for (std::size_t which = 0; which < tensors; ++which) {
        INFO(subject.name << ", " << in_place.name << " on tensor " << which);
        CHECK(trial(subject, in_place, which, expected) == "");
        ++refused_or_right;
      }
  }
  CHECK(refused_or_right > 500);
}

TEST_CASE("a trial of a change in place notices wrong gradients", "[fault-102]") {
  struct Unguarded : nn::Module {
    Tensor forward(const Tensor& x) override { return x * tensor({2.0, x.to_vector<double>()[0]}, DType::float64); }
  };
  FaultSubject subject{"Unguarded", Shared<Unguarded>::make(), {tensor({1.5, 2.5}, DType::float64).requires_grad_()}};
  const std::vector<double> others{1.0, 2.0};
  CHECK(trial(subject, kInPlace[1], 1, others) == "wrong gradients, and no error");
}

TEST_CASE("threads that differentiate over shared parameters add up to the right gradients", "[fault-105]") {
  const Tensor w = ones({2, 3}, DType::float64).requires_grad_(), b = zeros({2}, DType::float64).requires_grad_();
  constexpr int kRounds = 1000;
  const auto work = [&](double factor) {
    const Tensor x = full({5, 3}, factor, DType::float64);
    for (int i = 0; i < kRounds; ++i) (matmul(x, w, false, true) + b).sum().backward();
  };
  std::thread first(work, 1.0), second(work, 2.0), third(work, 4.0);
  first.join();
  second.join();
  third.join();
  CHECK(w.grad().to_vector<double>() == std::vector<double>(6, 5 * 7.0 * kRounds));
  CHECK(b.grad().to_vector<double>() == std::vector<double>(2, 5 * 3.0 * kRounds));
}

TEST_CASE("backward without a graph, a gradient or its saved values is refused for every layer and loss",
          "[fault-106]") {
  for (const FaultSubject& subject : all_subjects()) {
    INFO(subject.name);
    drop_gradients(subject);
    const Tensor y = subject(subject.inputs);
    if (!y.requires_grad()) continue;
    if (y.numel() != 1)
      CHECK(test::message_of([&] {
              y.backward();
            }).find("backward: without a gradient the tensor must have one element: ") == 0);
    CHECK(test::message_of([&] { y.backward(zeros({97}, y.dtype())); }) ==
          "backward: the gradient does not fit the tensor: expected " + to_string(y.shape()) + ", got [97]");
    CHECK(test::message_of([&] { y.backward(zeros(y.shape())); }) ==
          "backward: the gradient's element type differs: expected float64, got float32");
    CHECK(test::message_of([&] {
            y.detach().backward(ones_like(y).detach());
          }).find("backward: the tensor does not require grad: ") == 0);
    const Tensor dy = ones_like(y).detach();
    y.backward(dy);
    const auto once = gradients(subject);
    const std::string again = test::message_of([&] { y.backward(dy); });
    if (again == "no error") continue;  // nothing was saved
    CHECK(again.find("are freed: expected a graph not yet differentiated, got a second backward; pass retain_graph to "
                     "the first") != std::string::npos);
    CHECK(test::same_bits(gradients(subject), once));
  }
}
