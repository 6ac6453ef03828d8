#include <limits>

#include "base/fail.hpp"
#include "core/effect.hpp"
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

/// The numbers of a fill, after where they start: its bounds, or its mean and deviation.
template <class Number>
struct Fill {
  kernels::RandomStart start;
  Number first, second;
};

using autograd::ForwardArgs;

template <class T>
void uniform_numbers(const ForwardArgs& args) {
  const auto& f = args.attributes_as<Fill<double>>();
  kernels::fill_uniform(f.start, args.aux[0].as<T>(), args.aux[0].numel, f.first, f.second);
}

template <class T>
void normal_numbers(const ForwardArgs& args) {
  const auto& f = args.attributes_as<Fill<double>>();
  kernels::fill_normal(f.start, args.aux[0].as<T>(), args.aux[0].numel, f.first, f.second);
}

void whole_numbers(const ForwardArgs& args) {
  const auto& f = args.attributes_as<Fill<std::int64_t>>();
  kernels::fill_randint(f.start, args.aux[0].as<std::int64_t>(), args.aux[0].numel, f.first, f.second);
}

void permutation(const ForwardArgs& args) {
  const auto& start = args.attributes_as<kernels::RandomStart>();
  auto* items = args.aux[0].as<std::int64_t>();
  kernels::arange<std::int64_t>(items, args.aux[0].numel, 0, 1);
  Generator generator{start.seed, start.stream, start.first};
  shuffle(items, args.aux[0].numel, generator);
}

void check_floating(const char* where, DType dtype) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, where, ": element type not supported: expected float32 or float64, got ", dtype);
}

Tensor uniform_tensor(const Shape& shape, double low, double high, DType dtype) {
  const Tensor out = empty(shape, dtype);
  const Fill<double> fill{start_of(std::uint64_t(out.numel())), low, high};
  detail::run_effect("uniform", dtype == DType::float32 ? uniform_numbers<float> : uniform_numbers<double>, {}, {out},
                     fill);
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
  const Fill<double> fill{start_of(kernels::normal_positions(out.numel())), 0, 1};
  detail::run_effect("normal", dtype == DType::float32 ? normal_numbers<float> : normal_numbers<double>, {}, {out},
                     fill);
  return out;
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape) {
  if (low >= high)
    fail(ErrorKind::config, "randint: the range is empty: expected low < high, got low ", low, ", high ", high);
  const Tensor out = empty(shape, DType::int64);
  const Fill<std::int64_t> fill{start_of(std::uint64_t(out.numel())), low, high};
  detail::run_effect("randint", whole_numbers, {}, {out}, fill);
  return out;
}

Tensor randperm(std::int64_t n) {
  const Tensor out = empty({n}, DType::int64);
  detail::run_effect("randperm", permutation, {}, {out}, start_of(std::uint64_t(n)));
  return out;
}

Tensor rand_like(const Tensor& other) { return rand(other.shape(), other.dtype()); }
Tensor randn_like(const Tensor& other) { return randn(other.shape(), other.dtype()); }

}  // namespace taper
