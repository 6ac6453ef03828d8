#include <memory>
#include <thread>

#include "base/memory.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/test_ops.hpp"
#include "support/values.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::leaf;
using test::Values;
using test::values;
using test::without_positions;

// --- what is refused ------------------------------------------------------------------------------------------------

TEST_CASE("a second backward through freed values is refused, with retain_graph it adds", "[fault-106]") {
  const Tensor x = leaf({3.0});
  const Tensor y = mul(x, x);
  y.backward(Tensor(), true);
  y.backward();
  CHECK(values(x.grad()) == Values{12});
  CHECK(without_positions(test::message_of([&] { y.backward(); })) ==
        "backward: the saved values of mul (#N) are freed: expected a graph not yet differentiated, got a second "
        "backward; pass retain_graph to the first");
  CHECK(values(x.grad()) == Values{12});
}

TEST_CASE("a graph that saved nothing may be differentiated twice") {
  const Tensor x = leaf({3.0});
  const Tensor y = add(x, 1.0);
  y.backward();
  y.backward();
  CHECK(values(x.grad()) == Values{2});
}

TEST_CASE("backward needs a gradient that fits unless the tensor has one element") {
  const Tensor x = leaf({1.0, 2.0, 3.0});
  const Tensor y = mul(x, 2.0);
  CHECK(test::message_of([&] { y.backward(); }) ==
        "backward: without a gradient the tensor must have one element: expected 1, got 3; pass a gradient of shape "
        "[3]");
  CHECK(test::message_of([&] { y.backward(ones({2}, DType::float64)); }) ==
        "backward: the gradient does not fit the tensor: expected [3], got [2]");
  CHECK(test::message_of([&] { y.backward(ones({3})); }) ==
        "backward: the gradient's element type differs: expected float64, got float32");
  CHECK(!x.grad().defined());
  y.backward(tensor({1.0, 10.0, 100.0}, DType::float64));
  CHECK(values(x.grad()) == Values{2, 20, 200});
}

TEST_CASE("backward needs a recorded result") {
  const std::string sentence =
      "backward: the tensor does not require grad: expected a recorded result, got a tensor without a graph; call "
      "requires_grad_() on a leaf before computing";
  CHECK(test::message_of([] { tensor(1.0).backward(); }) == sentence);
  const Tensor x = leaf({2.0});
  CHECK(test::message_of([&] {
          const NoGradGuard no_grad;
          mul(x, x).backward();
        }) == sentence);
  CHECK(test::message_of([&] { mul(x, x).detach().backward(); }) == sentence);
  CHECK(test::message_of([] { Tensor().backward(); }) == "tensor: undefined: expected a tensor, got an empty handle");
}

TEST_CASE("a leaf that requires grad is changed in place under NoGradGuard only") {
  const Tensor x = leaf({1.0, 2.0});
  CHECK(test::message_of([&] { x.add_(1); }) ==
        "add_scalar_: a leaf that requires grad was changed in place: expected grad mode off, got on; use NoGradGuard");
  CHECK(values(x) == Values{1, 2});
  const NoGradGuard no_grad;
  x.add_(1);
  CHECK(values(x) == Values{2, 3});
}

TEST_CASE("a view of a leaf that requires grad is not changed in place while recording") {
  const Tensor x = leaf({1.0, 2.0});
  CHECK(test::message_of([&] {
          x.reshape({2, 1}).mul_(2);
        }) ==
        "mul_scalar_: a view of a tensor that requires grad was changed in place: expected a tensor with data of its "
        "own, got a view; clone() it first or use NoGradGuard");
  CHECK(values(x) == Values{1, 2});
}

TEST_CASE("requires_grad_ takes floating types, and is switched off on leaves only") {
  CHECK(test::message_of([] {
          tensor({1, 2}).requires_grad_();
        }) == "requires_grad_: only floating tensors have gradients: expected float32 or float64, got int64");
  const Tensor x = leaf({1.0});
  CHECK(test::message_of([&] { exp(x).requires_grad_(false); }) ==
        "requires_grad_: cannot be switched off on a result: expected a leaf, got the output of exp; use detach()");
  CHECK(!x.requires_grad_(false).requires_grad());
}

TEST_CASE("grad refuses what it cannot answer") {
  const Tensor x = leaf({2.0}), other = leaf({5.0});
  const auto ask = [&](const autograd::GradOptions& options) {
    return autograd::grad({mul(x, x)}, {x, other}, {}, options);
  };
  CHECK(test::message_of([&] { ask({}); }) ==
        "grad: the outputs do not depend on input 1: expected a path from it, got none; pass allow_unused to get an "
        "undefined gradient");
  const auto found = ask({.allow_unused = true});
  CHECK(values(found[0]) == Values{4});
  CHECK(!found[1].defined());
  CHECK(!x.grad().defined());
  CHECK(test::message_of([&] { ask({.create_graph = true}); }) ==
        "grad: gradients of gradients are not offered: expected create_graph false, got true");
  CHECK(test::message_of([&] {
          autograd::grad({mul(x, x)}, {x}, {x, x});
        }) == "grad: one gradient for each output: expected 1, got 2");
}

// --- gradients ------------------------------------------------------------------------------------------------------

TEST_CASE("the gradients of two inputs from one tensor have memory of their own") {
  static const void* memory[2];
  static constexpr autograd::Op kTwice{
      .name = "twice",
      .derivative = "da = dy, db = dy",
      .forward = {nullptr,
                  [](const autograd::ForwardArgs& args) {
                    for (std::int64_t i = 0; i < args.output.numel; ++i)
                      args.output.as<double>()[i] = args.inputs[0].as<double>()[i] + args.inputs[1].as<double>()[i];
                  },
                  nullptr},
      .backward = {nullptr,
                   [](const autograd::BackwardArgs& args) {
                     for (std::size_t k = 0; k < 2; ++k) memory[k] = args.input_gradients[k].gradient.data;
                     for (std::int64_t i = 0; i < args.output.numel; ++i)
                       for (const autograd::GradientSlot& slot : args.input_gradients) {
                         double* dx = slot.as<double>();
                         dx[i] = (slot.add ? dx[i] : 0.0) + args.output_gradient.as<double>()[i];
                       }
                   },
                   nullptr}};
  const Tensor x = leaf({1.0, 2.0, 3.0});
  const Tensor h = mul(x, 2.0);
  sum(autograd::apply(kTwice, {h, h}, h.shape(), h.dtype())).backward();
  CHECK(memory[0] != memory[1]);
  CHECK(values(x.grad()) == Values{4, 4, 4});
}

TEST_CASE("a second backward adds to the gradient of a leaf, zero_grad drops it") {
  const Tensor x = leaf({3.0, 5.0});
  sum(mul(x, x)).backward();
  sum(mul(x, x)).backward();
  CHECK(values(x.grad()) == Values{12, 20});
  x.zero_grad();
  CHECK(!x.grad().defined());
}

TEST_CASE("an operation in place on a result is part of what is differentiated") {
  const Tensor x = leaf({2.0, 3.0});
  const Tensor y = mul(x, 5.0);
  y.add_(x);
  y.mul_(2);
  sum(y).backward();
  CHECK(values(y) == Values{24, 36});
  CHECK(values(x.grad()) == Values{12, 12});
}

TEST_CASE("detach shares the data and the version counter and stops the gradient") {
  const Tensor x = leaf({2.0, 3.0});
  const Tensor y = mul(x, x), cut = y.detach();
  CHECK(cut.data<double>() == y.data<double>());
  CHECK(!cut.requires_grad());
  const Tensor z = exp(y), exponent = z.detach();
  exponent.add_(1);
  CHECK(without_positions(test::message_of([&] { sum(z).backward(); })) ==
        "backward: a value that exp (#N) saved was changed in place: expected version 0 of output 0, got 1; clone() it "
        "before the change");
}

TEST_CASE("hooks see a gradient once it is complete and may replace it") {
  const Tensor x = leaf({2.0, 3.0});
  const Tensor y = mul(x, 4.0);
  Values seen;
  y.register_hook([&](const Tensor& g) { seen = values(g); });
  y.register_hook([](const Tensor& g) { return mul(g, 10.0); });
  x.register_hook([](const Tensor& g) { return add(g, 1.0); });
  add(sum(y), sum(mul(y, 2.0))).backward();
  CHECK(seen == Values{3, 3});
  CHECK(values(x.grad()) == Values{121, 121});
  y.register_hook([](const Tensor&) { return ones({5}); });
  CHECK(test::message_of([&] { sum(y).backward(); }) ==
        "register_hook: the hook's gradient does not fit: expected float64 [2], got float32 [5]");
}

TEST_CASE("retain_grad keeps the gradient of a result") {
  const Tensor x = leaf({2.0});
  const Tensor y = mul(x, 4.0);
  y.retain_grad();
  mul(y, y).backward();
  CHECK(values(y.grad()) == Values{16});
  CHECK(values(x.grad()) == Values{64});
  CHECK(test::message_of([] { tensor(1.0).retain_grad(); }) ==
        "retain_grad: the tensor does not require grad: expected requires_grad true, got false");
}

TEST_CASE("anomaly mode names the operation whose gradient first became NaN") {
  const Tensor x = leaf({0.0});
  const autograd::AnomalyGuard anomaly;
  const Tensor y = mul(exp(sqrt(x)), 0.0);
  CHECK(without_positions(test::message_of([&] { y.backward(); })) ==
        "backward: a gradient became NaN: expected finite numbers, got NaN in the gradient of input 0 of sqrt (#N)");
}

TEST_CASE("an operation of the user's own is recorded and differentiated like the library's") {
  const Tensor a = leaf({2.0, 3.0}), b = leaf({5.0, 7.0});
  sum(test::plus(test::product(a, b), a)).backward();
  CHECK(values(a.grad()) == Values{6, 8});
  CHECK(values(b.grad()) == Values{2, 3});
}

namespace {

/// Attributes of as many bytes as a node has room for, and of one more.
struct Most {
  std::int64_t numbers[65535];
};
struct More {
  Most most;
  char one;
};

/// y = x times the last number.
constexpr autograd::Op kTimesLast{.name = "times_last",
                                  .derivative = "dx = dy * last",
                                  .forward = {nullptr,
                                              [](const autograd::ForwardArgs& args) {
                                                const auto last = double(args.attributes_as<Most>().numbers[65534]);
                                                for (std::int64_t i = 0; i < args.output.numel; ++i)
                                                  args.output.as<double>()[i] = last * args.inputs[0].as<double>()[i];
                                              },
                                              nullptr},
                                  .backward = {nullptr,
                                               [](const autograd::BackwardArgs& args) {
                                                 const auto last = double(args.attributes_as<Most>().numbers[65534]);
                                                 for (std::int64_t i = 0; i < args.output_gradient.numel; ++i)
                                                   args.input_gradients[0].as<double>()[i] =
                                                       last * args.output_gradient.as<double>()[i];
                                               },
                                               nullptr}};

}  // namespace

TEST_CASE("attributes are kept up to their largest size, beyond it they are refused where they would be kept") {
  const Tensor x = leaf({2.0, 3.0});
  const auto more = std::make_unique<More>();
  more->most.numbers[65534] = 5;
  const auto apply = [&](std::size_t bytes) {
    const autograd::Input inputs[] = {x};
    return autograd::apply(kTimesLast, inputs, x.shape(), x.dtype(), more.get(), bytes, {});
  };
  apply(sizeof(Most)).sum().backward();
  CHECK(values(x.grad()) == Values{5, 5});
  CHECK(test::message_of([&] { apply(sizeof(Most) + 1); }) ==
        "times_last: attributes are too large to be recorded: expected at most 524280 bytes, got 524281");
  const NoGradGuard guard;
  CHECK(values(apply(sizeof(Most) + 1)) == Values{10, 15});
}

// --- memory ---------------------------------------------------------------------------------------------------------

TEST_CASE("every step of a loop gives back all its memory, whether differentiated or not") {
  const auto step = [](bool differentiate) {
    const Tensor x = rand({7, 5}, DType::float64).requires_grad_();
    const Tensor loss = sum(mul(softmax(tanh(matmul(x, transpose(x, 0, 1))), 1), 2.0));
    if (differentiate) loss.backward(Tensor(), true);
  };
  step(true);
  const auto baseline = detail::memory_stats().live_bytes;
  for (int i = 0; i < 3000; ++i) {
    step(i % 2 == 0);
    REQUIRE(detail::memory_stats().live_bytes == baseline);
  }
}

TEST_CASE("a loop that records and never differentiates keeps a flat memory and allocates nothing new") {
  const Tensor w = leaf({0.5, 0.25, 0.125});
  const auto step = [&] { return sum(mul(tanh(w), 3.0)); };
  step();
  const auto before = detail::memory_stats();
  for (int i = 0; i < 1000000; ++i) step();
  const auto after = detail::memory_stats();
  CHECK(after.live_bytes == before.live_bytes);
  if (detail::kKeepsBlocks) CHECK(after.system_allocations == before.system_allocations);
}

TEST_CASE("a failed backward leaves nothing behind") {
  const auto fails = [] {
    const Tensor x = leaf({1.0, 2.0});
    const Tensor h = mul(x, 2.0), y = sum(mul(h, h));
    {
      const NoGradGuard no_grad;
      h.zero_();
    }
    (void)test::message_of([&] { y.backward(); });
  };
  fails();
  const auto baseline = detail::memory_stats().live_bytes;
  for (int i = 0; i < 100; ++i) fails();
  CHECK(detail::memory_stats().live_bytes == baseline);
}

TEST_CASE("two threads that differentiate over shared leaves add up to the right sums", "[fault-105]") {
  const Tensor w = leaf({1.0, 2.0, 3.0});
  constexpr int kRounds = 1000;
  const auto work = [&](double factor) {
    for (int i = 0; i < kRounds; ++i) sum(mul(w, factor)).backward();
  };
  std::thread first(work, 1.0), second(work, 2.0);
  first.join();
  second.join();
  CHECK(values(w.grad()) == Values(3, 3.0 * kRounds));
}

TEST_CASE("threads that differentiate the same graph take turns, its inner nodes too", "[fault-105]") {
  const Tensor w = leaf({1.0, 2.0, 3.0});
  Tensor shared = w;
  for (int i = 0; i < 7; ++i) shared = mul(shared, 2.0);  // nodes that only their consumer owns
  constexpr int kRounds = 300;
  const auto work = [&](double factor) {
    for (int i = 0; i < kRounds; ++i) {
      const Tensor own = i % 2 ? sum(mul(shared, factor)) : sum(shared);
      own.backward(Tensor(), true);
    }
  };
  std::thread first(work, 1.0), second(work, 3.0);
  first.join();
  second.join();
  CHECK(values(w.grad()) == Values(3, 128.0 * kRounds / 2 * (1 + 1 + 1 + 3)));
}

// --- tape -----------------------------------------------------------------------------------------------------------

TEST_CASE("a tape is printed as a table in recorded order") {
  std::string table, after;
  std::thread([&] {  // a new thread counts its nodes from 1
    const Tensor x = leaf({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}).set_name("x");
    const Tensor w = leaf({0.0, 0.0, 0.0}).set_name("w");
    const Tensor y = sum(tanh(mul(mul(x, w), ones({2, 1}, DType::float64))));
    table = autograd::Tape::of(y).to_string();
    y.backward();
    after = autograd::Tape::of(y).to_string();
  })
      .join();
  CHECK(table ==
        "number  op      shape   inputs               saved                        gradient\n"
        "#1      leaf x  [2, 3]                                                    -\n"
        "#2      leaf w  [3]                                                       -\n"
        "#3      mul     [2, 3]  #1, #2               input 0 [2, 3], input 1 [3]  -\n"
        "#4      mul     [2, 3]  #3, constant [2, 1]  input 1 [2, 1]               -\n"
        "#5      tanh    [2, 3]  #4                   output [2, 3]                -\n"
        "#6      sum     []      #5                                                -\n");
  CHECK(after ==
        "number  op      shape   inputs               saved    gradient\n"
        "#1      leaf x  [2, 3]                                0 0 0 0 ...\n"
        "#2      leaf w  [3]                                   5 7 9\n"
        "#3      mul     [2, 3]  #1, #2               (freed)  -\n"
        "#4      mul     [2, 3]  #3, constant [2, 1]  (freed)  -\n"
        "#5      tanh    [2, 3]  #4                   (freed)  -\n"
        "#6      sum     []      #5                   (freed)  -\n");
}
