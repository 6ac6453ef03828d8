#include "spatial.hpp"

namespace taper::nn {

void check_spatial_input(const char* where, const Shape& shape, int spatial_dims) {
  const int unbatched = spatial_dims + 1;
  if (shape.rank() != unbatched && shape.rank() != unbatched + 1)
    fail(ErrorKind::shape, where, ": wrong number of dimensions: expected ", unbatched, "-D unbatched or ",
         unbatched + 1, "-D batched input, got ", shape.rank(), "-D ", shape);
  if (shape[shape.rank() - unbatched] == 0)
    fail(ErrorKind::shape, where, ": no channels: expected >= 1, got 0 in ", shape);
}

void check_floating(const char* where, DType dtype) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, where, ": element type not supported: expected float32 or float64, got ", dtype,
         "; convert with to()");
}

}  // namespace taper::nn
