#include "spatial.hpp"

namespace taper::nn {

void check_spatial_input(const char* where, const Shape& shape, int spatial_dims, std::int64_t least_channels) {
  const int unbatched = spatial_dims + 1;
  if (shape.rank() != unbatched && shape.rank() != unbatched + 1)
    fail(ErrorKind::shape, where, ": wrong number of dimensions: expected ", unbatched, "-D unbatched or ",
         unbatched + 1, "-D batched input, got ", shape.rank(), "-D ", shape);
  if (shape[shape.rank() - unbatched] < least_channels)
    fail(ErrorKind::shape, where, ": no channels: expected >= 1, got 0 in ", shape);
}

void check_floating(const char* where, DType dtype) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, where, ": element type not supported: expected float32 or float64, got ", dtype,
         "; convert with to()");
}

std::string batched_text(const Shape& shape) {
  std::string text = "[N";
  for (int d = 1; d < shape.rank(); ++d) text += cat(", ", shape[d]);
  return text + "]";
}

void complete_option(const char* where, const char* key, std::optional<std::int64_t>& option, std::int64_t extent,
                     const Shape& input, const std::string& hint) {
  if (!option) option = extent;
  if (*option != extent)
    fail(ErrorKind::shape, where, ": ", key, " does not fit the input: expected ", extent, ", got ", *option, " in ",
         batched_text(input), hint);
}

void complete_channels(const char* where, const char* key, std::optional<std::int64_t>& channels, const Shape& input,
                       int spatial_dims) {
  const int batched = spatial_dims + 2;
  if (input.rank() != batched)
    fail(ErrorKind::shape, where, ": wrong number of dimensions: expected ", batched, "-D with the batch, got ",
         input.rank(), "-D ", batched_text(input));
  complete_option(where, key, channels, input[1], input);
  check_spatial_input(where, input, spatial_dims);
}

std::int64_t given(const char* where, const char* key, const std::optional<std::int64_t>& option) {
  if (!option)
    fail(ErrorKind::config, where, ": ", key, " is missing: expected a number, got none; only a model that knows its ",
         "input's shape can infer it");
  return *option;
}

}  // namespace taper::nn
