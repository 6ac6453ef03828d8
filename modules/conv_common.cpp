#include "conv_common.hpp"

#include <cmath>

#include "taper/creation.hpp"

namespace taper::nn {

static void check_groups(const char* where, std::int64_t groups) {
  if (groups < 1) fail(ErrorKind::config, where, ": groups must be positive: expected >= 1, got ", groups);
}

void check_divisible(const char* where, const char* key, std::int64_t channels, std::int64_t groups) {
  if (channels % groups != 0)
    fail(ErrorKind::config, where, ": ", key, " must be divisible by groups: expected a multiple of ", groups, ", got ",
         channels);
}

void check_channels(const char* where, std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups) {
  check_groups(where, groups);
  check_divisible(where, "in_channels", in_channels, groups);
  check_divisible(where, "out_channels", out_channels, groups);
}

void check_weight(const char* where, const Shape& weight, int spatial_dims, std::int64_t groups) {
  if (weight.rank() != spatial_dims + 2)
    fail(ErrorKind::shape, where, ": weight has the wrong number of dimensions: expected ", spatial_dims + 2,
         "-D, got ", weight.rank(), "-D ", weight);
  for (int d = 0; d < 2; ++d)
    if (weight[d] == 0) fail(ErrorKind::shape, where, ": weight has no channels: expected >= 1, got 0 in ", weight);
  check_groups(where, groups);
}

Tensor initial_parameter(const Shape& shape, const Shape& weight) {
  const double bound = 1 / std::sqrt(double(weight.slice(1, weight.rank()).numel()));
  return uniform(shape, -bound, bound);
}

void set_windows(kernels::ConvParams& params, std::span<const Window1d> windows, std::span<const std::int64_t> in,
                 std::span<const std::int64_t> out) {
  const std::size_t first = 3 - windows.size();
  for (std::size_t d = 0; d < windows.size(); ++d) {
    params.in[first + d] = in[d];
    params.out[first + d] = out[d];
    params.kernel[first + d] = windows[d].kernel;
    params.stride[first + d] = windows[d].stride;
    params.padding[first + d] = windows[d].padding_left;
    params.dilation[first + d] = windows[d].dilation;
  }
}

}  // namespace taper::nn
