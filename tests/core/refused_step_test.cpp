#include "core/random_state.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"
#include "taper/plan.hpp"

using namespace taper;
using test::message_of;

// What cannot be replayed is refused in full sentences.

namespace {

template <class F>
std::string refusal_of(F f, const Tensor& x = tensor({1.0, 2.0})) {
  CapturedStep step(f);
  const std::string message = message_of([&] { step(x); });
  CHECK(step.plans().empty());
  CapturedStep lenient(f, {.eager_if_refused = true});
  lenient(x);
  CHECK(lenient.refusal() == message);
  return message;
}

const std::string kElements =
    "capture: elements were read or written inside the step: expected no item(), to_vector() or data() of what a "
    "replay computes anew, got one of ";
const std::string kAfter = "; return the tensor and read it after the step";

}  // namespace

TEST_CASE("Reading elements of what a replay computes anew is refused") {
  CHECK(refusal_of([](const Tensor& x) {
          const Tensor sum = x.sum();
          return sum.item() > 0 ? x : exp(x);
        }) == kElements + "the result of sum []" + kAfter);
  CHECK(refusal_of([](const Tensor& x) { (void)x.to_vector<float>(); }) == kElements + "input 0 [2]" + kAfter);
  const Tensor w = ones({2}).requires_grad_();
  CHECK(refusal_of([&](const Tensor& x) {
          w.zero_grad();
          mul(w, x).sum().backward();
          (void)w.grad().to_string();
        }) == kElements + "the result of mul backward [2]" + kAfter);
  CHECK(refusal_of([&](const Tensor& x) {
          const Tensor mask = zeros({2});
          const Tensor y = mul(mask, x);
          mask.data<float>()[0] = 1;
          return mul(mask, y);
        }) == kElements + "a tensor the step has used already [2]" + kAfter);
}

TEST_CASE("Elements of tensors from outside, and of arrays not yet used, may be read and written") {
  const Tensor limit = tensor({3.0});
  CapturedStep step([&](const Tensor& x) {
    const Tensor mask = empty({2});
    mask.data<float>()[0] = 0;
    mask.data<float>()[1] = limit.item() > 2 ? 1.0f : 0.0f;
    return mul(x, mask);
  });
  for (int i = 0; i < 3; ++i) CHECK(step(full({2}, i))[0].to_vector<float>() == std::vector<float>{0, float(i)});
  CHECK(step.plans().size() == 1);
}

TEST_CASE("Reading a tensor that the step also changes is refused, in either order") {
  const Tensor counter = zeros({});
  CHECK(refusal_of([&](const Tensor& x) {
          const Tensor y = mul(x, counter.item());
          counter.add_(1);
          return y;
        }) ==
        "capture: a tensor that the step changes was read from outside the operations: expected no item(), to_vector() "
        "or data() of it inside the step, got add_scalar changing it; do one of the two after the step");
  CHECK(refusal_of([&](const Tensor& x) {
          counter.add_(1);
          return mul(x, counter.item());
        }) == kElements + "the result of add_scalar []" + kAfter);
}

TEST_CASE("A result that is kept elsewhere is refused") {
  Tensor state = zeros({2});
  const std::string start =
      "capture: a result is held after the step: expected all of them returned or dropped, got the result of ";
  const std::string end = "; return it from the step, because replays assign nothing";
  CHECK(refusal_of([&](const Tensor& x) {
          state = tanh(add(state, x));
          return state.sum();
        }) == start + "tanh [2]" + end);
  CHECK(refusal_of([&](const Tensor& x) {
          state = exp(x);
          return state;
        }) == start + "exp [2]" + end);
}

TEST_CASE("Hooks, inputs that require grad, and setting the random numbers are refused") {
  const Tensor w = ones({2}).requires_grad_();
  w.register_hook([](const Tensor&) {});
  CHECK(refusal_of([&](const Tensor& x) { mul(w, x).sum().backward(); }) ==
        "capture: a hook ran on a gradient: expected none, got one on leaf [2]; what it does is not repeated, so "
        "remove it or run the step as it is");
  CHECK(refusal_of([](const Tensor& x) { return exp(x); }, tensor({1.0, 2.0}).requires_grad_()) ==
        "capture: input 0 requires grad: expected plain values, got a tensor that is differentiated; pass detach(), "
        "and call requires_grad_() inside the step");
  CHECK(refusal_of([](const Tensor& x) {
          manual_seed(1);
          return add(x, rand({2}));
        }) == "capture: the random numbers were set inside the step: expected manual_seed() outside, got one inside");
}

TEST_CASE("A hook that is added later is noticed") {
  const Tensor w = ones({2}).requires_grad_();
  int calls = 0;
  CapturedStep step([&](const Tensor& x) { mul(w, x).sum().backward(); }, {.eager_if_refused = true});
  for (int i = 0; i < 3; ++i) {
    w.zero_grad();
    step(ones({2}));
  }
  CHECK(step.refusal().empty());
  w.register_hook([&](const Tensor&) { ++calls; });
  for (int i = 0; i < 3; ++i) {
    w.zero_grad();
    step(ones({2}));
  }
  CHECK(calls == 3);
  CHECK(!step.refusal().empty());
  step.reset();
  CHECK(step.refusal().empty());
}

TEST_CASE("Random numbers that no operation draws are refused") {
  CHECK(refusal_of([](const Tensor& x) {
          (void)detail::take_positions(Stream::init, 3);
          return exp(x);
        }) ==
        "capture: random numbers were drawn outside an operation: expected rand(), dropout() and their like, got "
        "positions of which no operation knows");
}

TEST_CASE("A captured step inside another, and a gradient from elsewhere, are refused") {
  CapturedStep inner([](const Tensor& x) { return exp(x); });
  CHECK(refusal_of([&](const Tensor& x) { return inner(x)[0]; }) ==
        "capture: a captured step was called inside another: expected one, got two; call its function");
  const Tensor w = ones({2}).requires_grad_(), g = ones({2});
  CHECK(refusal_of([&](const Tensor& x) {
          w.set_grad(g);
          return mul(w, x);
        }) ==
        "capture: a gradient was set to a tensor that the step did not compute: expected backward() or a result, got "
        "float32 [2]");
}

TEST_CASE("A step is called with as many inputs as its function takes") {
  CapturedStep step([](const Tensor& x) { return exp(x); });
  const Tensor x = ones({2});
  CHECK(message_of([&] { step(x, x); }) ==
        "capture: the step takes another number of inputs: expected as many as its function, got 2");
  CHECK(message_of([&] { step(Tensor()); }) == "tensor: undefined: expected a tensor, got an empty handle");
}
