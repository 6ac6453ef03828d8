#include "train/evaluate.hpp"

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/nn/dropout.hpp"
#include "taper/nn/linear.hpp"
#include "taper/nn/norm.hpp"
#include "taper/ops.hpp"

using namespace taper;
using namespace taper::train;

namespace {

nn::Sequential make_model() {
  manual_seed(3);
  return nn::Sequential{nn::make<nn::Linear>({.in_features = 5, .out_features = 3}), nn::make<nn::Dropout>({.p = 0.9})};
}

}  // namespace

TEST_CASE("predictions do not depend on the batch size, record nothing and keep the mode") {
  nn::Sequential model = make_model();
  const Tensor x = randn({11, 5});
  const Tensor whole = predict(model, x, 100);
  CHECK(whole.shape() == Shape{11, 3});
  CHECK_FALSE(whole.requires_grad());
  for (const std::int64_t size : {1, 2, 7, 11})
    CHECK(predict(model, x, size).to_vector<float>() == whole.to_vector<float>());
  CHECK(model.is_training());
  CHECK(test::message_of([&] { predict(model, x, 0); }) == "evaluate: batch_size: expected >= 1, got 0");
}

TEST_CASE("predictions and evaluations use running statistics, and leave them alone") {
  nn::Sequential model{nn::make<nn::BatchNorm1d>({.num_features = 5})};
  const Tensor x = randn({11, 5});
  model(x * 3.0 + 2.0);
  const auto before = model.state_dict()[2].tensor.to_vector<float>();
  const Tensor whole = predict(model, x, 100);
  for (const std::int64_t size : {1, 2, 7})
    CHECK(predict(model, x, size).to_vector<float>() == whole.to_vector<float>());
  nn::MSELoss loss;
  evaluate(model, loss, x, x, {.batch_size = 3});
  CHECK(model.state_dict()[2].tensor.to_vector<float>() == before);
  CHECK(model.state_dict()[4].tensor.item() == 1);
  CHECK(model.is_training());
}

TEST_CASE("a part that was frozen in evaluation mode stays so after an evaluation") {
  const auto frozen = nn::make<nn::BatchNorm1d>({.num_features = 5});
  nn::Sequential model{frozen, nn::make<nn::BatchNorm1d>({.num_features = 5})};
  model[0].eval();
  predict(model, randn({11, 5}), 4);
  CHECK_FALSE(model[0].is_training());
  CHECK(model[1].is_training());
  CHECK(model.is_training());
}

TEST_CASE("an evaluation gives loss and metrics of all samples, whatever the batch size") {
  nn::Sequential model = make_model();
  const Tensor x = randn({11, 5}), t = randint(0, 3, {11});
  nn::CrossEntropyLoss loss;
  const Evaluation whole = evaluate(model, loss, x, t, {.batch_size = 11, .keep_outputs = true});
  const Evaluation parts = evaluate(model, loss, x, t, {.batch_size = 3});
  CHECK(parts.sums.mean_loss() == Approx(whole.sums.mean_loss()).epsilon(1e-6));
  CHECK(parts.sums.value(Metric::accuracy) == whole.sums.value(Metric::accuracy));
  CHECK(parts.sums.samples == 11);
  CHECK(whole.outputs.shape() == Shape{11, 3});
  CHECK_FALSE(parts.outputs.defined());
  model.eval();
  CHECK(whole.sums.mean_loss() == Approx(loss(model(x), t).item()));
}

TEST_CASE("a loss that adds up its samples gives the same mean") {
  nn::Sequential model = make_model();
  const Tensor x = randn({11, 5}), t = randint(0, 3, {11});
  nn::CrossEntropyLoss mean, sum({.reduction = nn::Reduction::sum});
  CHECK(evaluate(model, sum, x, t, {.batch_size = 4, .sum_reduction = true}).sums.mean_loss() ==
        Approx(evaluate(model, mean, x, t, {.batch_size = 4}).sums.mean_loss()).epsilon(1e-6));
}

TEST_CASE("an evaluation stops when it is told to, or after so many batches") {
  nn::Sequential model = make_model();
  const Tensor x = randn({11, 5}), t = randint(0, 3, {11});
  nn::CrossEntropyLoss loss;
  volatile std::sig_atomic_t flag = 1;
  CHECK_FALSE(evaluate(model, loss, x, t, {.batch_size = 4, .stop = &flag}).complete);
  CHECK(evaluate(model, loss, x, t, {.batch_size = 4, .limit_batches = 2}).sums.samples == 8);
}

TEST_CASE("numbers are evaluated as numbers") {
  nn::Linear model({.in_features = 1, .out_features = 1});
  model.load_state_dict({{"weight", tensor({{2.0}})}, {"bias", tensor({1.0})}});
  nn::MSELoss loss;
  const Evaluation e = evaluate(model, loss, tensor({{1.0}, {2.0}}), tensor({{3.0}, {7.0}}));
  CHECK(e.sums.mean_loss() == 2);
  CHECK(e.sums.value(Metric::mae) == 1);
}
