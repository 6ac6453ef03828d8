#include "train/metrics.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using namespace taper::train;

namespace {

/// Scores whose largest is at `answers`, of `classes`.
Tensor scores_for(const std::vector<std::int64_t>& answers, std::int64_t classes) {
  Tensor scores = zeros({std::int64_t(answers.size()), classes});
  for (std::size_t i = 0; i < answers.size(); ++i) scores.data<float>()[std::int64_t(i) * classes + answers[i]] = 1;
  return scores;
}

/// Targets 0 0 0 1 1 2 2, answers 0 0 1 1 2 2 0; class 3 never occurs. scikit-learn 1.9 gives the numbers below.
MetricSums seven_samples() {
  MetricSums sums;
  sums.add_classes(scores_for({0, 0, 1, 1}, 4), tensor({0, 0, 0, 1}));
  sums.add_classes(scores_for({2, 2, 0}, 4), tensor({1, 2, 2}));
  return sums;
}

}  // namespace

TEST_CASE("accuracy, precision, recall and f1 are scikit-learn's macro averages") {
  const MetricSums sums = seven_samples();
  CHECK(sums.value(Metric::accuracy) == Approx(4.0 / 7));
  CHECK(sums.value(Metric::precision) == Approx((2.0 / 3 + 1.0 / 2 + 1.0 / 2) / 3));
  CHECK(sums.value(Metric::recall) == Approx((2.0 / 3 + 1.0 / 2 + 1.0 / 2) / 3));
  CHECK(sums.value(Metric::f1) == Approx((2.0 / 3 + 1.0 / 2 + 1.0 / 2) / 3));
  CHECK(sums.value(Metric::top5) == 1);
}

TEST_CASE("a class that is never predicted has precision 0") {
  MetricSums sums;
  sums.add_classes(scores_for({0, 0, 0}, 2), tensor({0, 0, 1}));
  CHECK(sums.value(Metric::precision) == Approx((2.0 / 3 + 0) / 2));
  CHECK(sums.value(Metric::recall) == Approx(0.5));
  CHECK(sums.value(Metric::f1) == Approx((0.8 + 0) / 2));
  const auto reports = class_reports(sums);
  CHECK(reports[0].support == 2);
  CHECK(reports[1].precision == 0);
}

TEST_CASE("top5 counts targets among the five largest scores, the first of equals first") {
  MetricSums sums;
  const Tensor scores = tensor({{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}});
  sums.add_classes(scores, tensor({2, 1}));
  CHECK(sums.value(Metric::top5) == 0.5);
  MetricSums equal;
  equal.add_classes(zeros({2, 7}), tensor({4, 5}));
  CHECK(equal.value(Metric::top5) == 0.5);
}

TEST_CASE("scores with positions are compared position by position, and ignored targets are left out") {
  MetricSums sums;
  // [1, 2, 3]: class 1 leads at positions 0 and 2.
  sums.add_classes(tensor({{{0.0, 5.0, 1.0}, {1.0, 2.0, 3.0}}}), tensor({{1, 1, -100}}));
  CHECK(sums.measured == 2);
  CHECK(sums.value(Metric::accuracy) == 0.5);
}

TEST_CASE("the answer that never looks is the commonest class") {
  const MetricSums sums = seven_samples();
  CHECK(sums.baseline(Metric::accuracy) == Approx(3.0 / 7));
  CHECK(sums.baseline(Metric::recall) == Approx(1.0 / 3));
  CHECK(sums.baseline(Metric::top5) == 1);
}

TEST_CASE("errors of numbers are averaged over all, r2 over the columns") {
  MetricSums sums;
  sums.add_numbers(tensor({{1.0, 10.0}, {2.0, 30.0}}), tensor({{1.0, 20.0}, {4.0, 20.0}}));
  sums.add_numbers(tensor({{7.0, 25.0}}), tensor({{7.0, 35.0}}));
  // Squared errors: 0 4 0 and 100 100 100; absolute: 0 2 0, 10 10 10.
  CHECK(sums.value(Metric::mse) == Approx(304.0 / 6));
  CHECK(sums.value(Metric::rmse) == Approx(std::sqrt(304.0 / 6)));
  CHECK(sums.value(Metric::mae) == Approx(32.0 / 6));
  // Spreads around the means 4 and 25: 18 and 150.
  CHECK(sums.value(Metric::r2) == Approx(((1 - 4.0 / 18) + (1 - 300.0 / 150)) / 2));
  CHECK(sums.baseline(Metric::mse) == Approx((18.0 + 150.0) / 6));
  CHECK(sums.baseline(Metric::r2) == Approx(0).margin(1e-12));
}

TEST_CASE("r2 of constant targets is 1 when they are met and 0 otherwise") {
  MetricSums met, missed;
  met.add_numbers(full({3}, 1e6), full({3}, 1e6));
  missed.add_numbers(full({3}, 2.0), full({3}, 0.1));
  CHECK(met.value(Metric::r2) == 1);
  CHECK(missed.value(Metric::r2) == 0);
}

TEST_CASE("metrics of no samples are 0") {
  const MetricSums none;
  CHECK(none.value(Metric::accuracy) == 0);
  CHECK(none.value(Metric::r2) == 0);
  CHECK(none.baseline(Metric::accuracy) == 0);
  CHECK(none.mean_loss() == 0);
}

TEST_CASE("the loss is the mean over the samples, not over the batches") {
  MetricSums sums;
  sums.add_loss(2.0 * 3, 3);
  sums.add_loss(6.0 * 1, 1);
  CHECK(sums.mean_loss() == 3);
}

TEST_CASE("saved sums go on where they were") {
  MetricSums sums = seven_samples();
  sums.add_loss(1.25, 7);
  sums.add_numbers(tensor({{1.0, 3.0}}), tensor({{2.0, 5.0}}));
  std::vector<NamedTensor> saved = sums.save("progress.");
  saved.push_back({"fc.weight", zeros({2, 3})});
  MetricSums loaded;
  loaded.load("progress.", saved);
  CHECK(loaded.value(Metric::f1) == sums.value(Metric::f1));
  CHECK(loaded.value(Metric::mse) == sums.value(Metric::mse));
  CHECK(loaded.value(Metric::r2) == sums.value(Metric::r2));
  CHECK(loaded.mean_loss() == 1.25 / 7);
  CHECK(loaded.top5 == 7);
  CHECK(MetricSums{}.save("progress.").empty());
  CHECK(test::message_of([&] {
          loaded.load("progress.", std::vector<NamedTensor>{{"progress.counts", zeros({2})}});
        }) == "checkpoint: progress.*: expected three counts, got float32 [2]");
}

TEST_CASE("a confusion matrix has targets in rows and answers in columns") {
  const Tensor matrix = confusion_matrix(tensor({0, 0, 1, 2, 9}), tensor({0, 1, 1, 0, 1}), 3);
  CHECK(matrix.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1, 0, 0, 1, 0, 1, 0, 0});
}

TEST_CASE("larger is better for accuracies, smaller for losses, unless the mode says otherwise") {
  CHECK(larger_is_better("val_accuracy", Mode::automatic));
  CHECK(larger_is_better("train_top5", Mode::automatic));
  CHECK(larger_is_better("val_r2", Mode::automatic));
  CHECK_FALSE(larger_is_better("val_loss", Mode::automatic));
  CHECK_FALSE(larger_is_better("val_rmse", Mode::automatic));
  CHECK(larger_is_better("val_loss", Mode::max));
  CHECK_FALSE(larger_is_better("val_f1", Mode::min));
}
