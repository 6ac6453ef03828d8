#include "train/metrics.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "taper/creation.hpp"

namespace taper::train {

namespace {

double quotient(std::int64_t a, std::int64_t b) { return b > 0 ? double(a) / double(b) : 0; }

ClassReport report_of(std::int64_t hits, std::int64_t predicted, std::int64_t actual) {
  // 2 P R / (P + R) = 2 hits / (predicted + actual)
  return {quotient(hits, predicted), quotient(hits, actual), quotient(2 * hits, predicted + actual), actual};
}

/// The scores of one sample, `stride` apart.
struct Row {
  const float* x;
  std::int64_t n, stride;

  float operator[](std::int64_t i) const { return x[i * stride]; }

  std::int64_t argmax() const {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < n; ++i)
      if ((*this)[i] > (*this)[best]) best = i;
    return best;
  }

  /// How many scores come before that of class `c`; of equal ones the first comes first.
  std::int64_t rank(std::int64_t c) const {
    std::int64_t above = 0;
    for (std::int64_t i = 0; i < n; ++i) above += (*this)[i] > (*this)[c] || ((*this)[i] == (*this)[c] && i < c);
    return above;
  }
};

}  // namespace

void MetricSums::add_classes(const Tensor& scores, const Tensor& targets) {
  const std::int64_t n = scores.size(0), classes = scores.size(1);
  const std::int64_t inner = n * classes > 0 ? scores.numel() / (n * classes) : 0;
  if (targets.numel() != n * inner)
    fail(ErrorKind::shape, "metrics: expected ", n * inner, " classes for scores ", scores.shape(), ", got ",
         targets.shape());
  for (auto* counts : {&hits, &predicted, &actual}) counts->resize(std::size_t(classes));
  const float* x = scores.data<float>();
  const std::int64_t* t = targets.data<std::int64_t>();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < inner; ++j) {
      const std::int64_t target = t[i * inner + j];
      if (target < 0 || target >= classes) continue;
      const Row row{x + i * classes * inner + j, classes, inner};
      const std::int64_t answer = row.argmax();
      ++measured;
      ++predicted[std::size_t(answer)];
      ++actual[std::size_t(target)];
      hits[std::size_t(target)] += answer == target;
      top5 += answer == target || row.rank(target) < 5;
    }
}

void MetricSums::add_numbers(const Tensor& outputs, const Tensor& targets) {
  if (outputs.shape() != targets.shape())
    fail(ErrorKind::shape, "metrics: expected targets ", outputs.shape(), ", got ", targets.shape());
  if (outputs.numel() == 0) return;
  const std::int64_t n = outputs.size(0), columns = outputs.numel() / n;
  const float *y = outputs.data<float>(), *t = targets.data<float>();
  if (first.empty()) {
    // Sums of squares around a value of the column keep their digits when its mean is far from 0.
    first.assign(t, t + columns);
    for (auto* sums : {&sum, &squares, &errors}) sums->resize(std::size_t(columns));
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto c = std::size_t(j);
      const double target = double(t[i * columns + j]), error = double(y[i * columns + j]) - target;
      const double centred = target - first[c];
      sum[c] += centred;
      squares[c] += centred * centred;
      errors[c] += error * error;
      absolute += std::fabs(error);
    }
  measured += n;
}

double MetricSums::value(Metric metric) const {
  if (measured == 0) return 0;
  if (metric == Metric::top5) return quotient(top5, measured);
  if (metric == Metric::accuracy) {
    std::int64_t right = 0;
    for (const std::int64_t h : hits) right += h;
    return quotient(right, measured);
  }
  if (needs_classes(metric)) {
    double total = 0;
    std::int64_t seen = 0;
    for (std::size_t c = 0; c < hits.size(); ++c) {
      if (predicted[c] + actual[c] == 0) continue;
      const ClassReport report = report_of(hits[c], predicted[c], actual[c]);
      total += metric == Metric::precision ? report.precision : metric == Metric::recall ? report.recall : report.f1;
      ++seen;
    }
    return seen > 0 ? total / double(seen) : 0;
  }
  const double n = double(measured), columns = double(errors.size());
  double squared = 0, r2 = 0;
  for (std::size_t c = 0; c < errors.size(); ++c) {
    const double spread = squares[c] - sum[c] * sum[c] / n;
    squared += errors[c];
    r2 += spread > 0 ? 1 - errors[c] / spread : errors[c] == 0 ? 1 : 0;
  }
  if (metric == Metric::r2) return r2 / columns;
  if (metric == Metric::mae) return absolute / (n * columns);
  const double mse = squared / (n * columns);
  return metric == Metric::mse ? mse : std::sqrt(mse);
}

double MetricSums::baseline(Metric metric) const {
  MetricSums constant = *this;
  if (needs_classes(metric)) {
    if (actual.empty()) return 0;
    const auto commonest = std::size_t(std::max_element(actual.begin(), actual.end()) - actual.begin());
    constant.hits.assign(hits.size(), 0);
    constant.predicted.assign(hits.size(), 0);
    constant.hits[commonest] = actual[commonest];
    constant.predicted[commonest] = measured;
    // Five constant answers: the five commonest classes.
    std::vector<std::int64_t> sorted = actual;
    std::sort(sorted.rbegin(), sorted.rend());
    constant.top5 = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(5, sorted.size()); ++i) constant.top5 += sorted[i];
    return constant.value(metric);
  }
  for (std::size_t c = 0; c < errors.size(); ++c)
    constant.errors[c] = std::max(0.0, squares[c] - sum[c] * sum[c] / double(measured));
  // The sums do not tell the mean absolute deviation.
  if (metric == Metric::mae) return std::nan("");
  return constant.value(metric);
}

std::vector<NamedTensor> MetricSums::save(const std::string& prefix) const {
  if (samples == 0 && measured == 0) return {};
  std::vector<NamedTensor> tensors = {{prefix + "counts", from_data(std::vector{samples, measured, top5}, {3})},
                                      {prefix + "totals", from_data(std::vector{loss, absolute}, {2})}};
  const auto width = [](const auto& v) { return std::int64_t(v.size()); };
  if (!hits.empty()) {
    std::vector<std::int64_t> all;
    for (const auto* counts : {&hits, &predicted, &actual}) all.insert(all.end(), counts->begin(), counts->end());
    tensors.push_back({prefix + "classes", from_data(all, {3, width(hits)})});
  }
  if (!first.empty()) {
    std::vector<double> all;
    for (const auto* sums : {&first, &sum, &squares, &errors}) all.insert(all.end(), sums->begin(), sums->end());
    tensors.push_back({prefix + "columns", from_data(all, {4, width(first)})});
  }
  return tensors;
}

void MetricSums::load(const std::string& prefix, std::span<const NamedTensor> tensors) {
  *this = {};
  const auto refuse = [&](const Tensor& t, const char* expected) {
    fail(ErrorKind::format, "checkpoint: ", prefix, "*: expected ", expected, ", got ", t.dtype(), " ", t.shape());
  };
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(prefix)) continue;
    const std::string key = name.substr(prefix.size());
    if (key == "counts") {
      if (tensor.dtype() != DType::int64 || tensor.numel() != 3) refuse(tensor, "three counts");
      const auto v = tensor.to_vector<std::int64_t>();
      samples = v[0], measured = v[1], top5 = v[2];
    } else if (key == "totals") {
      if (tensor.dtype() != DType::float64 || tensor.numel() != 2) refuse(tensor, "two float64 sums");
      const auto v = tensor.to_vector<double>();
      loss = v[0], absolute = v[1];
    } else if (key == "classes") {
      if (tensor.dtype() != DType::int64 || tensor.dim() != 2 || tensor.size(0) != 3) refuse(tensor, "int64 [3, K]");
      const std::int64_t *v = tensor.data<std::int64_t>(), k = tensor.size(1);
      hits.assign(v, v + k), predicted.assign(v + k, v + 2 * k), actual.assign(v + 2 * k, v + 3 * k);
    } else if (key == "columns") {
      if (tensor.dtype() != DType::float64 || tensor.dim() != 2 || tensor.size(0) != 4)
        refuse(tensor, "float64 [4, D]");
      const double* v = tensor.data<double>();
      const std::int64_t d = tensor.size(1);
      first.assign(v, v + d), sum.assign(v + d, v + 2 * d);
      squares.assign(v + 2 * d, v + 3 * d), errors.assign(v + 3 * d, v + 4 * d);
    }
  }
}

std::vector<ClassReport> class_reports(const MetricSums& sums) {
  std::vector<ClassReport> reports;
  for (std::size_t c = 0; c < sums.hits.size(); ++c)
    reports.push_back(report_of(sums.hits[c], sums.predicted[c], sums.actual[c]));
  return reports;
}

Tensor confusion_matrix(const Tensor& targets, const Tensor& predicted, std::int64_t classes) {
  if (targets.shape() != predicted.shape())
    fail(ErrorKind::shape, "confusion_matrix: expected predictions ", targets.shape(), ", got ", predicted.shape());
  Tensor matrix = zeros({classes, classes}, DType::int64);
  const std::int64_t *t = targets.data<std::int64_t>(), *p = predicted.data<std::int64_t>();
  const auto is_class = [&](std::int64_t c) { return c >= 0 && c < classes; };
  for (std::int64_t i = 0; i < targets.numel(); ++i)
    if (is_class(t[i]) && is_class(p[i])) ++matrix.data<std::int64_t>()[t[i] * classes + p[i]];
  return matrix;
}

const char* name_of(Metric metric) { return names_of(metric)[std::size_t(metric)]; }

bool larger_is_better(const std::string& column, Mode mode) {
  if (mode != Mode::automatic) return mode == Mode::max;
  for (const Metric metric :
       {Metric::accuracy, Metric::precision, Metric::recall, Metric::f1, Metric::top5, Metric::r2})
    if (column.ends_with(cat('_', name_of(metric)))) return true;
  return false;
}

}  // namespace taper::train
