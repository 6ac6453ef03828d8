#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/fail.hpp"
#include "taper/creation.hpp"
#include "taper/data.hpp"

namespace taper::data {

namespace {

/// Calls `visit(channel, first element, count)` for each stretch of one channel in [N, C, ...].
template <class Visit>
void each_channel(const Shape& shape, const Visit& visit) {
  const std::int64_t n = shape[0], channels = shape[1];
  const std::int64_t inner = n * channels > 0 ? shape.numel() / (n * channels) : 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t c = 0; c < channels; ++c) visit(c, (i * channels + c) * inner, inner);
}

struct Statistics {
  std::vector<double> mean, deviation, min, max;
};

Statistics statistics(const Tensor& inputs) {
  const Shape& shape = inputs.shape();
  const std::size_t channels = std::size_t(shape[1]);
  const double count = double(shape.numel() / shape[1]);
  const float* x = inputs.data<float>();
  Statistics s{std::vector<double>(channels), std::vector<double>(channels),
               std::vector<double>(channels, std::numeric_limits<double>::infinity()),
               std::vector<double>(channels, -std::numeric_limits<double>::infinity())};
  each_channel(shape, [&](std::int64_t c, std::int64_t first, std::int64_t n) {
    const auto k = std::size_t(c);
    for (std::int64_t i = first; i < first + n; ++i) {
      s.mean[k] += double(x[i]);
      s.min[k] = std::min(s.min[k], double(x[i]));
      s.max[k] = std::max(s.max[k], double(x[i]));
    }
  });
  for (double& m : s.mean) m /= count;
  each_channel(shape, [&](std::int64_t c, std::int64_t first, std::int64_t n) {
    const auto k = std::size_t(c);
    for (std::int64_t i = first; i < first + n; ++i)
      s.deviation[k] += (double(x[i]) - s.mean[k]) * (double(x[i]) - s.mean[k]);
  });
  for (double& d : s.deviation) d = std::sqrt(d / count);
  return s;
}

}  // namespace

Normalization Normalization::fit(Normalize kind, const Tensor& inputs) {
  if (kind == Normalize::none) return {};
  if (inputs.dim() < 2 || inputs.numel() == 0)
    fail(ErrorKind::shape, "normalization: expected samples [N, C, ...], got ", inputs.shape());
  const Statistics s = statistics(inputs);
  Normalization result{empty({inputs.size(1)}), empty({inputs.size(1)})};
  for (std::size_t c = 0; c < s.mean.size(); ++c) {
    const bool standard = kind == Normalize::standard;
    const double scale = standard ? s.deviation[c] : s.max[c] - s.min[c];
    // A scale that float32 holds only without its leading digits would blow noise up to anything.
    const bool usable = s.max[c] > s.min[c] && scale >= double(std::numeric_limits<float>::min());
    result.shift.data<float>()[c] = float(standard ? s.mean[c] : s.min[c]);
    result.scale.data<float>()[c] = usable ? float(std::min(scale, double(std::numeric_limits<float>::max()))) : 1.0f;
  }
  return result;
}

Tensor Normalization::apply(const Tensor& inputs) const {
  if (!shift.defined()) return inputs;
  if (inputs.dim() < 2 || inputs.size(1) != shift.numel())
    fail(ErrorKind::shape, "normalization: channels differ: expected [N, ", shift.numel(), ", ...], got ",
         inputs.shape());
  Tensor out = empty(inputs.shape());
  const float* x = inputs.data<float>();
  float* y = out.data<float>();
  each_channel(inputs.shape(), [&](std::int64_t c, std::int64_t first, std::int64_t n) {
    const double from = double(shift.data<float>()[c]), by = double(scale.data<float>()[c]);
    // y = (x - shift) / scale
    for (std::int64_t i = first; i < first + n; ++i) y[i] = float((double(x[i]) - from) / by);
  });
  return out;
}

}  // namespace taper::data
