#include "taper/creation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.hpp"
#include "base/cpu_capability.hpp"
#include "base/fail.hpp"
#include "base/threads.hpp"
#include "core/dispatch.hpp"
#include "core/node.hpp"
#include "kernels/movement.hpp"
#include "kernels/parallel.hpp"

namespace taper {

[[gnu::cold]] void detail::fail_bytes(const Shape& shape) {
  fail(ErrorKind::shape, "empty: number of bytes overflows 64 bits: expected below 2^63, got shape ", shape);
}

Tensor empty(const Shape& shape, DType dtype) { return detail::new_tensor(shape, dtype); }

Tensor full(const Shape& shape, Scalar value, DType dtype) {
  Tensor out = empty(shape, dtype);
  visit_dtype(dtype, [&]<class T>(Type<T>) { std::fill_n(out.data<T>(), out.numel(), to_element<T>("full", value)); });
  return out;
}

Tensor zeros(const Shape& shape, DType dtype) {
  Tensor out = empty(shape, dtype);
  std::memset(out.impl()->buffer->data(), 0, out.impl()->buffer->bytes);
  return out;
}

Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }
Tensor empty_like(const Tensor& other) { return empty(other.shape(), other.dtype()); }
Tensor zeros_like(const Tensor& other) { return zeros(other.shape(), other.dtype()); }
Tensor ones_like(const Tensor& other) { return ones(other.shape(), other.dtype()); }
Tensor full_like(const Tensor& other, Scalar value) { return full(other.shape(), value, other.dtype()); }

template <class T>
Tensor from_data(const T* data, const Shape& shape) {
  Tensor out = empty(shape, dtype_of<T>);
  if (shape.numel() > 0) std::memcpy(out.data<T>(), data, std::size_t(shape.numel()) * sizeof(T));
  return out;
}

template <class T>
Tensor from_data(const std::vector<T>& data, const Shape& shape) {
  if (std::int64_t(data.size()) != shape.numel())
    fail(ErrorKind::shape, "from_data: the elements do not fill the shape: expected ", shape.numel(), " for ", shape,
         ", got ", data.size());
  return from_data(data.data(), shape);
}

template Tensor from_data(const float*, const Shape&);
template Tensor from_data(const double*, const Shape&);
template Tensor from_data(const std::int64_t*, const Shape&);
template Tensor from_data(const std::vector<float>&, const Shape&);
template Tensor from_data(const std::vector<double>&, const Shape&);
template Tensor from_data(const std::vector<std::int64_t>&, const Shape&);

NestedList::NestedList(std::initializer_list<NestedList> children) : children_(children), is_list_(true) {}
NestedList::NestedList(const NestedList& other) = default;
NestedList::~NestedList() = default;

namespace {

struct Flattened {
  std::int64_t extents[Shape::kMaxRank];
  std::size_t rank = 0;
  std::vector<const NestedList*> leaves;
  bool all_integers = true;
};

void flatten_list(std::span<const NestedList> list, std::size_t depth, Flattened& out) {
  if (depth == std::size_t(Shape::kMaxRank))
    fail(ErrorKind::shape, "tensor: too many dimensions: expected at most ", Shape::kMaxRank, ", got more");
  if (depth == out.rank) out.extents[out.rank++] = std::int64_t(list.size());
  if (std::int64_t(list.size()) != out.extents[depth])
    fail(ErrorKind::shape, "tensor: ragged list: expected ", out.extents[depth], " elements in dimension ", depth,
         ", got ", list.size());
  for (const NestedList& item : list) {
    if (item.is_list() != list[0].is_list() || (!item.is_list() && depth + 1 < out.rank))
      fail(ErrorKind::shape,
           "tensor: ragged list: expected the same nesting everywhere, got numbers beside lists in "
           "dimension ",
           depth);
    if (item.is_list()) {
      flatten_list(item.children(), depth + 1, out);
    } else {
      out.leaves.push_back(&item);
      out.all_integers &= item.is_integer();
    }
  }
}

Tensor from_list(std::initializer_list<NestedList> values, std::optional<DType> dtype) {
  Flattened flat;
  flatten_list({values.begin(), values.size()}, 0, flat);
  const DType chosen = dtype.value_or(flat.all_integers && !flat.leaves.empty() ? DType::int64 : DType::float32);
  Tensor out = empty(Shape(std::span<const std::int64_t>(flat.extents, flat.rank)), chosen);
  visit_dtype(chosen, [&]<class T>(Type<T>) {
    T* y = out.data<T>();
    for (const NestedList* leaf : flat.leaves)
      *y++ = leaf->is_integer() ? T(leaf->integer()) : to_element<T>("tensor", leaf->value());
  });
  return out;
}

}  // namespace

Tensor tensor(std::initializer_list<NestedList> values) { return from_list(values, std::nullopt); }
Tensor tensor(std::initializer_list<NestedList> values, DType dtype) { return from_list(values, dtype); }
Tensor tensor(double value) { return scalar(value, DType::float32); }
Tensor scalar(double value, DType dtype) { return full(Shape(), value, dtype); }

// --- ranges ---------------------------------------------------------------------------------------------------------

namespace {

/// How many numbers start, start + step, ... lie before `end`, in whole numbers.
std::int64_t count_whole(std::int64_t start, std::int64_t end, std::int64_t step) {
  const std::uint64_t distance =
      step > 0 ? std::uint64_t(end) - std::uint64_t(start) : std::uint64_t(start) - std::uint64_t(end);
  const std::uint64_t stride = step > 0 ? std::uint64_t(step) : 0 - std::uint64_t(step);
  const std::uint64_t count = distance / stride + (distance % stride != 0);
  if (count > std::uint64_t(INT64_MAX))
    fail(ErrorKind::shape, "arange: number of elements overflows 64 bits: expected below 2^63, got ", count);
  return std::int64_t(count);
}

std::int64_t count_real(double start, double end, double step) {
  const auto count = checked::to_int64(std::ceil((end - start) / step));
  if (!count)
    fail(ErrorKind::shape, "arange: number of elements overflows 64 bits: expected finite numbers, got start ", start,
         ", end ", end, ", step ", step);
  return *count;
}

void check_direction(Scalar start, Scalar end, Scalar step) {
  if (step.value > 0 ? start.value > end.value : step.value < 0 ? start.value < end.value : true)
    fail(ErrorKind::config, "arange: the step does not lead from start to end: expected ",
         start.value > end.value ? "a negative" : "a positive", " step, got ", step.value);
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype) {
  check_direction(start, end, step);
  return visit_dtype(dtype, [&]<class T>(Type<T>) {
    const auto first = to_element<kernels::RangeNumber<T>>("arange", start);
    const auto by = to_element<kernels::RangeNumber<T>>("arange", step);
    std::int64_t n;
    if constexpr (std::is_integral_v<T>)
      n = count_whole(first, to_element<T>("arange", end), by);
    else
      n = count_real(first, end.value, by);
    const Tensor out = empty({n}, dtype);
    kernels::arange(out.data<T>(), n, first, by);
    return out;
  });
}

Tensor arange(Scalar start, Scalar end, Scalar step) {
  const bool whole = start.is_integer && end.is_integer && step.is_integer;
  return arange(start, end, step, whole ? DType::int64 : DType::float32);
}
Tensor arange(Scalar end) { return arange(0, end); }

Tensor linspace(double start, double end, std::int64_t steps, DType dtype) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, "linspace: element type not supported: expected float32 or float64, got ", dtype);
  if (steps < 0) fail(ErrorKind::config, "linspace: the number of steps is negative: expected >= 0, got ", steps);
  const Tensor out = empty({steps}, dtype);
  if (dtype == DType::float32)
    kernels::linspace(out.data<float>(), steps, start, end);
  else
    kernels::linspace(out.data<double>(), steps, start, end);
  return out;
}

Tensor eye(std::int64_t n, std::int64_t m, DType dtype) {
  const Tensor out = zeros({n, m == -1 ? n : m}, dtype);
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    T* y = out.data<T>();
    for (std::int64_t i = 0; i < std::min(n, out.size(1)); ++i) y[i * out.size(1) + i] = T(1);
  });
  return out;
}

// --- threads --------------------------------------------------------------------------------------------------------

void set_num_threads(int n) {
  if (n < 1) fail(ErrorKind::config, "set_num_threads: the number of threads must be positive: expected >= 1, got ", n);
  kernels::set_max_threads(n);
}
int get_num_threads() { return kernels::max_threads(); }

bool set_flush_denormal(bool on) {
  const auto mode = threads::FloatMode::current();
  (on ? mode.with_flushed_denormals() : mode.with_denormals()).set();
  return threads::FloatMode::current().flushes_denormals() == on;
}

const char* get_cpu_capability() { return detail::name_of(detail::cpu_capability()); }

}  // namespace taper
