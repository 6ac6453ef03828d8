#include "taper/plan.hpp"

#include <stdexcept>

#include "base/memory.hpp"
#include "core/random_state.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/lr_scheduler.hpp"
#include "taper/nn/dropout.hpp"
#include "taper/nn/linear.hpp"
#include "taper/nn/loss.hpp"
#include "taper/ops.hpp"
#include "taper/optim.hpp"

using namespace taper;
using test::message_of;
using test::same_bits;

namespace {

std::vector<float> floats(const Tensor& x) { return x.to_vector<float>(); }

/// Counts how often the function itself ran.
template <class F>
auto counted(int& runs, F f) {
  return [&runs, f](const auto&... x) -> decltype(f(x...)) {
    ++runs;
    return f(x...);
  };
}

}  // namespace

// --- what a replay gives --------------------------------------------------------------------------------------------

TEST_CASE("A step runs once for each shape and element type, and is replayed afterwards") {
  int runs = 0;
  const Tensor w = tensor({2, 3, 5}, DType::float32);
  CapturedStep step([&](const Tensor& x) {
    ++runs;
    return mul(x, w).sum();
  });
  CHECK(step(tensor({1.0, 10.0, 100.0}))[0].item() == 532);
  CHECK(step(tensor({2.0, 20.0, 200.0}))[0].item() == 1064);
  CHECK(runs == 1);
  CHECK(step(tensor({{1.0, 1.0, 1.0}, {2.0, 2.0, 2.0}}))[0].item() == 30);
  CHECK(step(tensor({{3.0, 1.0, 1.0}, {2.0, 2.0, 2.0}}))[0].item() == 34);
  CHECK(runs == 2);
  CHECK(step(tensor({1, 2, 3}))[0].item() == 23);
  CHECK(step(tensor({3.0, 30.0, 300.0}))[0].item() == 1596);
  CHECK(runs == 3);
  CHECK(step.plans().size() == 3);
}

TEST_CASE("A replay leaves gradients where backward leaves them") {
  const Tensor w = tensor({2.0, 3.0}).requires_grad_();
  CapturedStep step([&](const Tensor& x) {
    w.zero_grad();
    const Tensor loss = mul(mul(w, w), x).sum();
    loss.backward();
    return loss;
  });
  step(tensor({1.0, 1.0}));
  CHECK(floats(w.grad()) == std::vector<float>{4, 6});
  step(tensor({10.0, 100.0}));
  CHECK(floats(w.grad()) == std::vector<float>{40, 600});
  w.zero_grad();
  step(tensor({5.0, 7.0}));
  CHECK(floats(w.grad()) == std::vector<float>{20, 42});
  CHECK(step.plans().size() == 1);
}

TEST_CASE("Gradients that are not dropped are added to, by a plan of its own") {
  int runs = 0;
  const Tensor w = tensor({2.0, 3.0}).requires_grad_();
  CapturedStep step(counted(runs, [&](const Tensor& x) { mul(w, x).sum().backward(); }));
  for (int i = 1; i <= 5; ++i) {
    step(tensor({1.0, 10.0}));
    CHECK(floats(w.grad()) == std::vector<float>{float(i), float(10 * i)});
  }
  CHECK(runs == 2);
  w.zero_grad();
  step(tensor({2.0, 3.0}));
  CHECK(floats(w.grad()) == std::vector<float>{2, 3});
  w.set_grad(tensor({100.0, 100.0}));
  step(tensor({2.0, 3.0}));
  CHECK(floats(w.grad()) == std::vector<float>{102, 103});
  CHECK(runs == 2);
}

TEST_CASE("What is still held of the call before keeps its values") {
  const Tensor w = tensor({2.0, 3.0}).requires_grad_();
  CapturedStep step([&](const Tensor& x) {
    w.zero_grad();
    const Tensor loss = mul(w, x).sum();
    loss.backward();
    return loss;
  });
  step(tensor({1.0, 1.0}));
  std::vector<Tensor> losses, gradients;
  for (int i = 0; i < 4; ++i) {
    losses.push_back(step(tensor({double(i), 0.0}))[0]);
    gradients.push_back(i % 2 ? w.grad() : w.grad().detach());
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(losses[std::size_t(i)].item() == 2 * i);
    CHECK(floats(gradients[std::size_t(i)]) == std::vector<float>{float(i), 0});
  }
}

TEST_CASE("A result may be the next input, an input, or the same memory twice") {
  CapturedStep step([](const Tensor& x, const Tensor& y) {
    const Tensor sum = add(x, y);
    return std::vector<Tensor>{sum, sum.reshape({2, 1}), x, Tensor()};
  });
  Tensor x = tensor({1.0, 2.0});
  const Tensor y = tensor({1.0, 10.0});
  for (int i = 1; i <= 3; ++i) {
    const auto results = step(x, y);
    CHECK(floats(results[2]) == floats(x));
    CHECK(!results[3].defined());
    CHECK(results[1].shape() == Shape{2, 1});
    x = results[0];
    CHECK(floats(x) == std::vector<float>{1.0f + float(i), 2.0f + float(10 * i)});
    CHECK(floats(results[1]) == floats(x));
  }
  CHECK(step.plans().size() == 1);
}

TEST_CASE("The same tensor given twice makes another plan than two tensors") {
  int runs = 0;
  CapturedStep step(counted(runs, [](const Tensor& x, const Tensor& y) { return sub(x, y); }));
  const Tensor a = tensor({5.0, 7.0}), b = tensor({1.0, 2.0});
  CHECK(floats(step(a, a)[0]) == std::vector<float>{0, 0});
  CHECK(floats(step(a, b)[0]) == std::vector<float>{4, 5});
  CHECK(floats(step(b, b)[0]) == std::vector<float>{0, 0});
  CHECK(runs == 2);
}

TEST_CASE("An outside tensor is not an input, even when it is given as one") {
  const Tensor reference = tensor({5.0, 7.0});
  CapturedStep step([&](const Tensor& x) { return std::vector<Tensor>{sub(x, reference), x}; });
  CHECK(floats(step(reference)[0]) == std::vector<float>{0, 0});
  CHECK(step(reference)[1].impl()->buffer == reference.impl()->buffer);
  CHECK(floats(step(tensor({6.0, 9.0}))[0]) == std::vector<float>{1, 2});
  CHECK(floats(step(reference)[0]) == std::vector<float>{0, 0});
  CHECK(step.plans().size() == 1);
}

TEST_CASE("Arrays made without operations start anew in each replay, also those changed in place") {
  CapturedStep step([](const Tensor& x) {
    const Tensor sum = zeros({3});
    const Tensor before = add(sum, 1);
    sum.add_(x);
    sum.add_(full({3}, 0.5));
    return std::vector<Tensor>{sum, before};
  });
  for (int i = 0; i < 3; ++i) {
    const auto& results = step(full({3}, double(i)));
    CHECK(floats(results[0]) == std::vector<float>(3, float(i) + 0.5f));
    CHECK(floats(results[1]) == std::vector<float>(3, 1));
  }
}

TEST_CASE("Changes in place reach inputs and outside tensors, and their versions grow") {
  const Tensor total = zeros({2});
  CapturedStep step([&](const Tensor& x) {
    total.add_(x);
    x.mul_(2.0);
  });
  for (int i = 1; i <= 3; ++i) {
    const Tensor x = tensor({1.0, 10.0});
    step(x);
    CHECK(floats(x) == std::vector<float>{2, 20});
    CHECK(floats(total) == std::vector<float>{float(i), float(10 * i)});
    CHECK(total.impl()->buffer->version == std::uint32_t(i));
    CHECK(x.impl()->buffer->version == 1);
  }
}

TEST_CASE("Random numbers are drawn anew, and the stream ends where eager steps leave it") {
  const auto trace = [](bool enabled) {
    manual_seed(3);
    CapturedStep step(
        [](const Tensor& x) {
          const Tensor noise = add(randn({5}), rand({5}));
          return add(nn::functional::dropout(x, 0.5), add(noise, to(randperm(5), DType::float32)));
        },
        {.enabled = enabled});
    std::vector<float> all;
    for (int i = 0; i < 4; ++i)
      for (const float v : floats(step(ones({5}))[0])) all.push_back(v);
    for (const std::uint64_t position : detail::random_state().positions) all.push_back(float(position));
    return all;
  };
  CHECK(same_bits(trace(true), trace(false)));
}

TEST_CASE("A replay uses the learning rate of the moment, and state that was loaded") {
  const auto trace = [](bool enabled) {
    const Tensor w = tensor({2.0, 3.0, 5.0}).requires_grad_();
    optim::Adam adam(std::vector<Tensor>{w}, {.lr = 0.1});
    optim::StepLR schedule(adam, {.step_size = 2, .gamma = 0.5});
    CapturedStep step(
        [&](const Tensor& x) {
          adam.zero_grad();
          mul(mul(w, w), x).sum().backward();
          adam.step();
        },
        {.enabled = enabled});
    std::vector<float> all;
    for (int i = 0; i < 8; ++i) {
      step(full({3}, 1.0 + i));
      schedule.step();
      if (i == 4) adam.load_state_dict(adam.state_dict());
      for (const float v : floats(w)) all.push_back(v);
    }
    return all;
  };
  CHECK(same_bits(trace(true), trace(false)));
}

TEST_CASE("Two steps of two optimisers and gradients between them are replayed in order") {
  const auto trace = [](bool enabled) {
    const Tensor a = tensor({2.0, 3.0}).requires_grad_(), b = tensor({5.0, 7.0}).requires_grad_();
    optim::SGD first(std::vector<Tensor>{a}, {.lr = 0.01}), second(std::vector<Tensor>{b}, {.lr = 0.1});
    CapturedStep step(
        [&](const Tensor& x) {
          first.zero_grad();
          mul(mul(a, b), x).sum().backward();
          first.step();
          second.zero_grad();
          const Tensor loss = mul(mul(a, b), b).sum();
          loss.backward();
          second.step();
          const NoGradGuard no_grad;
          b.sub_(mul(b.grad(), 0.001));
          return loss;
        },
        {.enabled = enabled});
    std::vector<float> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(float(step(full({2}, 1.0 + i))[0].item()));
      for (const Tensor& t : {a, b, a.grad(), b.grad()})
        for (const float v : floats(t)) all.push_back(v);
    }
    return all;
  };
  CHECK(same_bits(trace(true), trace(false)));
}

TEST_CASE("Leaves of the step itself, and gradients by grad(), are part of it") {
  CapturedStep step([](const Tensor& x) {
    const Tensor leaf = x.detach().requires_grad_();
    const Tensor y = mul(mul(leaf, leaf), leaf).sum();
    const Tensor first = autograd::grad({y}, {leaf}, {}, {.retain_graph = true})[0];
    y.backward();
    return std::vector<Tensor>{first, leaf.grad()};
  });
  for (int i = 1; i <= 3; ++i) {
    const auto& results = step(full({2}, double(i)));
    CHECK(floats(results[0]) == std::vector<float>(2, float(3 * i * i)));
    CHECK(floats(results[1]) == std::vector<float>(2, float(3 * i * i)));
  }
  CHECK(step.plans().size() == 1);
}

TEST_CASE("Checks of values are part of a replay") {
  const Tensor table = tensor({{1.0, 2.0}, {3.0, 4.0}});
  CapturedStep step([&](const Tensor& index) { return index_select(table, 0, index); });
  CHECK(floats(step(tensor({1, 0, 1}))[0]) == std::vector<float>{3, 4, 1, 2, 3, 4});
  CHECK(message_of([&] {
          step(tensor({0, 2, 1}));
        }) == "index_select: index out of range: expected 0 to 1, got 2 in row 1");
  CHECK(floats(step(tensor({0, 0, 1}))[0]) == std::vector<float>{1, 2, 1, 2, 3, 4});

  const Tensor scores = zeros({2, 3, 2});
  CapturedStep loss([&](const Tensor& target) { return nn::functional::cross_entropy(scores, target); });
  for (int i = 0; i < 2; ++i) loss(tensor({{0, 1}, {2, 0}}));
  CHECK(message_of([&] {
          loss(tensor({{0, 1}, {2, 3}}));
        }) == "cross_entropy: class index out of range: expected 0 to 2, got 3 at [1, 1]");
}

// --- memory ---------------------------------------------------------------------------------------------------------

TEST_CASE("A replay takes no memory, and gives back all of a plan's when the step goes") {
  const auto before = detail::memory_stats().live_bytes;
  {
    nn::Linear layer({.in_features = 7, .out_features = 3});
    optim::Adam adam(layer.named_parameters());
    CapturedStep step([&](const Tensor& x) {
      adam.zero_grad();
      const Tensor loss = nn::functional::dropout(layer(x), 0.5).sum();
      loss.backward();
      adam.step();
      return loss;
    });
    const Tensor x = ones({5, 7});
    step(x);
    step(x);
    const auto first = detail::memory_stats();
    for (int i = 0; i < 100; ++i) step(x);
    const auto last = detail::memory_stats();
    CHECK(first.live_bytes == last.live_bytes);
    CHECK(first.system_allocations == last.system_allocations);
  }
  CHECK(detail::memory_stats().live_bytes == before);
}

TEST_CASE("A plan's arrays share memory, and it says how much at least is needed") {
  CapturedStep step([](const Tensor& x) { return exp(exp(exp(exp(exp(x))))).sum(); });
  step(zeros({1000}));
  const autograd::Plan plan = step.plans()[0];
  CHECK(plan.size() == 6);
  CHECK(plan.bytes() == 2 * 4032);
  CHECK(plan.lower_bound_bytes() == 2 * 4032);
  CHECK(plan.constant_bytes() == 0);
}

TEST_CASE("An activation is written where it is read from, unless that is still needed") {
  CapturedStep once([](const Tensor& x) { return relu(exp(x)).sum(); });
  once(zeros({1000}));
  CHECK(once.plans()[0].bytes() == 4032);
  CapturedStep twice([](const Tensor& x) {
    const Tensor y = exp(x) - 2;
    return (relu(y) - y).sum();
  });
  for (int i = 0; i < 3; ++i) CHECK(twice(zeros({1000}))[0].item() == 1000);
  CHECK(twice.plans()[0].bytes() > 4032);
}

TEST_CASE("A plan prints as a table") {
  const Tensor w = tensor({2.0, 3.0}).requires_grad_().set_name("w");
  CapturedStep step([&](const Tensor& x) {
    w.zero_grad();
    const Tensor loss = mul(w, x).tanh().sum();
    loss.backward();
    return loss;
  });
  step(tensor({1.0, 2.0}));
  CHECK(step.plans()[0].to_string() ==
        "number  kernel         reads                  writes\n"
        "#0      drop gradient\n"
        "#1      mul            w [2], input 0 [2]     @0 [2]\n"
        "#2      tanh           @0 [2]                 @64 [2]\n"
        "#3      sum            @64 [2]                result []\n"
        "#4      sum backward   constant []            @0 [2]\n"
        "#5      tanh backward  @0 [2], @64 [2]        @128 [2]\n"
        "#6      mul backward   @128 [2], input 0 [2]  gradient [2]\n"
        "#7      set gradient\n"
        "192 bytes planned, at least 192 needed, 4 of constants\n");
}

TEST_CASE("The plan unused for longest is dropped") {
  int runs = 0;
  CapturedStep step(counted(runs, [](const Tensor& x) { return exp(x); }), {.max_plans = 2});
  const Tensor one = ones({1}), two = ones({2}), three = ones({3});
  for (const Tensor& x : {one, two, one, three}) step(x);
  CHECK(runs == 3);
  CHECK(step.plans().size() == 2);
  step(one);
  CHECK(runs == 3);
  step(two);
  CHECK(runs == 4);
  step.reset();
  CHECK(step.plans().empty());
  step(one);
  CHECK(runs == 5);
}

// --- when a plan does not fit ---------------------------------------------------------------------------------------

TEST_CASE("Another mode of a module leads to another plan, and back to the first") {
  int runs = 0;
  nn::Dropout dropout({.p = 1});
  CapturedStep step(counted(runs, [&](const Tensor& x) { return dropout(x); }));
  for (int i = 0; i < 3; ++i) {
    dropout.train();
    CHECK(step(ones({2}))[0].to_vector<float>() == std::vector<float>{0, 0});
    dropout.eval();
    CHECK(step(ones({2}))[0].to_vector<float>() == std::vector<float>{1, 1});
  }
  CHECK(runs == 2);
}

TEST_CASE("Parameters that are replaced, frozen or thawed lead to another plan") {
  int runs = 0;
  nn::Linear layer({.in_features = 2, .out_features = 1, .bias = false});
  CapturedStep step(counted(runs, [&](const Tensor& x) {
    layer.zero_grad();
    const Tensor loss = layer(to(x, layer.weight.dtype())).sum();
    if (loss.requires_grad()) loss.backward();
    return loss;
  }));
  const Tensor x = ones({3, 2});
  step(x);
  step(x);
  CHECK(runs == 1);
  layer.requires_grad_(false);
  step(x);
  CHECK(runs == 2);
  CHECK(!layer.weight.grad().defined());
  layer.requires_grad_(true);
  step(x);
  CHECK(runs == 3);
  layer.to(DType::float64);
  CHECK(step(x)[0].dtype() == DType::float64);
  CHECK(runs == 4);
}

TEST_CASE("Grad mode leads to another plan") {
  int runs = 0;
  const Tensor w = ones({2}).requires_grad_();
  CapturedStep step(counted(runs, [&](const Tensor& x) { return mul(w, x); }));
  step(ones({2}));
  {
    const NoGradGuard no_grad;
    step(ones({2}));
    step(ones({2}));
  }
  step(ones({2}));
  CHECK(runs == 2);
}

TEST_CASE("Under an anomaly guard, and when it is switched off, a step runs as it is") {
  int runs = 0;
  CapturedStep step(counted(runs, [](const Tensor& x) { return exp(x); }));
  step(ones({2}));
  const autograd::AnomalyGuard guard;
  step(ones({2}));
  CHECK(runs == 2);
  CapturedStep off(counted(runs, [](const Tensor& x) { return exp(x); }), {.enabled = false});
  off(ones({2}));
  off(ones({2}));
  CHECK(runs == 4);
  CHECK(off.plans().empty());
}

TEST_CASE("A step that throws leaves nothing behind and is recorded at the next call") {
  bool throws = true;
  CapturedStep step([&](const Tensor& x) {
    const Tensor y = exp(x);
    if (throws) throw std::runtime_error("stop");
    return y;
  });
  CHECK_THROWS_AS(step(ones({2})), std::runtime_error);
  CHECK(step.plans().empty());
  throws = false;
  step(ones({2}));
  CHECK(step.plans().size() == 1);
}
