#include <limits>

#include "base/fail.hpp"
#include "core/random_state.hpp"
#include "kernels/movement.hpp"
#include "kernels/random_fill.hpp"
#include "taper/creation.hpp"

namespace taper {

namespace {

kernels::RandomStart start_of(std::uint64_t n) {
  const Generator taken = detail::take_positions(Stream::init, n);
  return {taken.seed, taken.stream, taken.position};
}

void check_floating(const char* where, DType dtype) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, where, ": element type not supported: expected float32 or float64, got ", dtype);
}

Tensor uniform_tensor(const Shape& shape, double low, double high, DType dtype) {
  const Tensor out = empty(shape, dtype);
  const kernels::RandomStart start = start_of(std::uint64_t(out.numel()));
  if (dtype == DType::float32)
    kernels::fill_uniform(start, out.data<float>(), out.numel(), low, high);
  else
    kernels::fill_uniform(start, out.data<double>(), out.numel(), low, high);
  return out;
}

}  // namespace

Tensor rand(const Shape& shape, DType dtype) {
  check_floating("rand", dtype);
  return uniform_tensor(shape, 0, 1, dtype);
}

Tensor uniform(const Shape& shape, double low, double high, DType dtype) {
  check_floating("uniform", dtype);
  if (!(low <= high) || !(high - low < std::numeric_limits<double>::infinity()))
    fail(ErrorKind::config, "uniform: the range must be finite and not turned around: expected low <= high, got low ",
         low, ", high ", high);
  return uniform_tensor(shape, low, high, dtype);
}

Tensor randn(const Shape& shape, DType dtype) {
  check_floating("randn", dtype);
  const Tensor out = empty(shape, dtype);
  const kernels::RandomStart start = start_of(kernels::normal_positions(out.numel()));
  if (dtype == DType::float32)
    kernels::fill_normal(start, out.data<float>(), out.numel(), 0, 1);
  else
    kernels::fill_normal(start, out.data<double>(), out.numel(), 0, 1);
  return out;
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape) {
  if (low >= high)
    fail(ErrorKind::config, "randint: the range is empty: expected low < high, got low ", low, ", high ", high);
  const Tensor out = empty(shape, DType::int64);
  kernels::fill_randint(start_of(std::uint64_t(out.numel())), out.data<std::int64_t>(), out.numel(), low, high);
  return out;
}

Tensor randperm(std::int64_t n) {
  const Tensor out = empty({n}, DType::int64);
  std::int64_t* items = out.data<std::int64_t>();
  kernels::arange<std::int64_t>(items, n, 0, 1);
  Generator generator = detail::take_positions(Stream::init, std::uint64_t(n));
  shuffle(items, n, generator);
  return out;
}

Tensor rand_like(const Tensor& other) { return rand(other.shape(), other.dtype()); }
Tensor randn_like(const Tensor& other) { return randn(other.shape(), other.dtype()); }

}  // namespace taper
