#include "cli/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/fail.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"
#include "train/prepare.hpp"

namespace taper::cli {

namespace {

using train::Metric;

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// The metrics that make sense for such targets.
std::vector<Metric> metrics_for(const TestResult& result) {
  if (result.labels.empty()) return {Metric::mse, Metric::rmse, Metric::mae, Metric::r2};
  std::vector<Metric> metrics{Metric::accuracy, Metric::precision, Metric::recall, Metric::f1};
  if (result.labels.size() > 5) metrics.push_back(Metric::top5);
  return metrics;
}

/// One name for each of `n` outputs.
std::vector<std::string> class_names(const std::vector<std::string>& labels, std::int64_t n) {
  std::vector<std::string> names = labels;
  for (auto i = std::int64_t(names.size()); i < n; ++i) names.push_back(cat(i));
  return names;
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[200];
  const int n = std::snprintf(text, sizeof text, format, values...);
  return std::string(text, std::size_t(std::clamp(n, 0, int(sizeof text) - 1)));
}

/// Precision, recall and F1 as means over classes, each class counting `weight(report)`.
struct ReportMean {
  double precision = 0, recall = 0, f1 = 0, weights = 0;
  void add(const train::ClassReport& report, double weight) {
    precision += weight * report.precision;
    recall += weight * report.recall;
    f1 += weight * report.f1;
    weights += weight;
  }
  double mean(double sum) const { return weights > 0 ? sum / weights : 0; }
};

struct ClassTable {
  std::vector<train::ClassReport> reports;
  std::vector<bool> seen;  ///< classes that were predicted or present
  ReportMean macro, weighted;

  explicit ClassTable(const train::MetricSums& sums) : reports(train::class_reports(sums)) {
    for (std::size_t c = 0; c < reports.size(); ++c) {
      seen.push_back(sums.predicted[c] + sums.actual[c] > 0);
      if (!seen[c]) continue;
      macro.add(reports[c], 1);
      weighted.add(reports[c], double(reports[c].support));
    }
  }
};

// scikit-learn's classification_report with digits=4.
std::string class_report(const TestResult& result) {
  const ClassTable table(result.sums);
  std::size_t width = std::string("weighted avg").size();
  for (const std::string& label : result.labels) width = std::max(width, label.size());
  const auto padded = [&](const std::string& name) {
    return std::string(width - std::min(width, name.size()), ' ') + name;
  };
  const auto line = [&](const std::string& name, double p, double r, double f, std::int64_t support) {
    return padded(name) + formatted("  %9.4f %9.4f %9.4f %9lld\n", p, r, f, static_cast<long long>(support));
  };
  const std::int64_t n = result.sums.measured;
  std::string text = padded("") + "  precision    recall  f1-score   support\n\n";
  for (std::size_t c = 0; c < table.reports.size(); ++c) {
    const train::ClassReport& r = table.reports[c];
    if (table.seen[c]) text += line(result.labels[c], r.precision, r.recall, r.f1, r.support);
  }
  text += "\n" + padded("accuracy") +
          formatted("  %9s %9s %9.4f %9lld\n", "", "", result.sums.value(Metric::accuracy), static_cast<long long>(n));
  const ReportMean &m = table.macro, &w = table.weighted;
  text += line("macro avg", m.mean(m.precision), m.mean(m.recall), m.mean(m.f1), n);
  return text + line("weighted avg", w.mean(w.precision), w.mean(w.recall), w.mean(w.f1), n);
}

/// A field as RFC 4180 wants it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

train::TrainedModel load_trained(const std::string& path) {
  if (!is_directory(path)) return train::load_for_prediction(path);
  const std::string last = path + "/checkpoints/last.safetensors", best = path + "/checkpoints/best.safetensors";
  if (!exists(last) && exists(best)) return train::load_for_prediction(best);
  train::TrainedModel trained = train::load_for_prediction(last);
  const auto& early = trained.config.train.early_stopping;
  return early && early->restore_best && exists(best) ? train::load_for_prediction(best) : std::move(trained);
}

TestResult evaluate_trained(const train::TrainedModel& trained, const data::SourceOptions& source) {
  const config::TrainingConfig& config = trained.config;
  const bool classes = config.loss.type->takes_classes;
  const data::Dataset set = data::load_dataset(source, classes, trained.labels);
  TestResult result;
  result.targets = train::fit_targets("test", set.targets, config.model.output(), config.loss);
  const auto loss = config.loss.type->make(config.loss.options.get());
  const Value reduction = train::option_of(config.loss, "reduction");
  const bool sums_up = reduction.get<std::string>() && *reduction.get<std::string>() == "sum";
  train::Evaluation evaluation = train::evaluate(*trained.model, *loss, trained.prepare(set.inputs), result.targets,
                                                 {.sum_reduction = sums_up, .keep_outputs = true});
  result.sums = std::move(evaluation.sums);
  result.outputs = evaluation.outputs;
  if (set.has_classes()) result.labels = class_names(trained.labels, result.outputs.size(1));
  return result;
}

std::optional<double> value_of(const train::MetricSums& sums, const std::string& name) {
  if (name == "loss") return sums.mean_loss();
  const auto names = train::names_of(Metric{});
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return sums.value(Metric(i));
  return std::nullopt;
}

std::string report_text(const TestResult& result) {
  std::string text = result.labels.empty() ? "" : class_report(result) + "\n";
  const auto baseline = [&](Metric metric) { return formatted("%.4f", result.sums.baseline(metric)); };
  text += formatted("samples   %lld\nloss      %.4f\n", static_cast<long long>(result.sums.samples),
                    result.sums.mean_loss());
  if (!result.labels.empty())
    return text + formatted("accuracy  %.4f", result.sums.value(Metric::accuracy)) +
           cat(" (always the commonest class: ", baseline(Metric::accuracy), ")\n");
  for (const Metric metric : metrics_for(result))
    text += formatted("%-9s %.4f", train::name_of(metric), result.sums.value(metric)) +
            cat(" (always the mean: ", baseline(metric), ")\n");
  return text;
}

config::Json report_json(const TestResult& result) {
  config::Json json = {{"samples", result.sums.samples}, {"loss", result.sums.mean_loss()}};
  for (const Metric metric : metrics_for(result)) {
    json["metrics"][train::name_of(metric)] = result.sums.value(metric);
    json["baseline"][train::name_of(metric)] = result.sums.baseline(metric);
  }
  if (result.labels.empty()) return json;
  const ClassTable table(result.sums);
  json["classes"] = config::Json::array();
  for (std::size_t c = 0; c < table.reports.size(); ++c) {
    const train::ClassReport& r = table.reports[c];
    json["classes"].push_back({{"label", result.labels[c]},
                               {"precision", r.precision},
                               {"recall", r.recall},
                               {"f1", r.f1},
                               {"support", r.support}});
  }
  for (const auto& [name, mean] : {std::pair{"macro_avg", table.macro}, std::pair{"weighted_avg", table.weighted}})
    json[name] = {
        {"precision", mean.mean(mean.precision)}, {"recall", mean.mean(mean.recall)}, {"f1", mean.mean(mean.f1)}};
  return json;
}

std::string confusion_csv(const TestResult& result) {
  if (result.labels.empty()) return "";
  const auto k = std::int64_t(result.labels.size());
  const Tensor predicted = argmax(result.outputs, 1);
  const std::vector<std::int64_t> counts =
      train::confusion_matrix(result.targets, predicted, k).to_vector<std::int64_t>();
  std::string text = "target";
  for (const std::string& label : result.labels) text += "," + csv_field(label);
  for (std::int64_t row = 0; row < k; ++row) {
    text += "\n" + csv_field(result.labels[std::size_t(row)]);
    for (std::int64_t column = 0; column < k; ++column) text += cat(',', counts[std::size_t(row * k + column)]);
  }
  return text + "\n";
}

Tensor to_predictions(const train::TrainedModel& trained, const Tensor& outputs) {
  const NoGradGuard no_grad;
  const std::string& loss = trained.config.loss.type->name;
  if (loss == "CrossEntropyLoss") return softmax(outputs, outputs.dim() > 1 ? 1 : 0);
  if (loss == "NLLLoss") return exp(outputs);
  return loss == "BCEWithLogitsLoss" ? sigmoid(outputs) : outputs;
}

std::string predictions_csv(const train::TrainedModel& trained, const Tensor& outputs, const Tensor& targets) {
  const Tensor predictions = to_predictions(trained, outputs);
  const std::int64_t n = predictions.size(0), columns = n > 0 ? predictions.numel() / n : 0;
  const bool classes = trained.config.loss.type->takes_classes && predictions.dim() == 2;
  const auto names = class_names(trained.labels, columns);
  const bool shows_targets = targets.defined() && classes && targets.dim() == 1;
  std::string text = cat("index", shows_targets ? ",target" : "", classes ? ",label" : "");
  for (std::int64_t c = 0; c < columns; ++c)
    text += "," + (classes ? csv_field("p_" + names[std::size_t(c)]) : cat("y", c));
  text += '\n';
  const auto values = predictions.to_vector<float>();
  const auto name_of_class = [&](std::int64_t c) {
    return c >= 0 && c < columns ? csv_field(names[std::size_t(c)]) : cat(c);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = values.data() + i * columns;
    text += cat(i);
    if (shows_targets) text += "," + name_of_class(targets.data<std::int64_t>()[i]);
    if (classes) text += "," + name_of_class(std::max_element(row, row + columns) - row);
    for (std::int64_t c = 0; c < columns; ++c) text += cat(',', row[c]);
    text += '\n';
  }
  return text;
}

}  // namespace taper::cli
