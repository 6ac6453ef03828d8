#pragma once

#include <concepts>
#include <span>

#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

namespace taper {

/// Number literals nested in braces, as `tensor({{1, 2}, {3, 4}})` takes them.
class NestedList {
 public:
  template <std::integral T>
  NestedList(T value) : value_(double(value)), integer_(std::int64_t(value)), is_integer_(true) {}
  template <std::floating_point T>
  NestedList(T value) : value_(value) {}
  NestedList(std::initializer_list<NestedList> children);
  NestedList(const NestedList& other);
  ~NestedList();

  bool is_list() const { return is_list_; }
  const std::vector<NestedList>& children() const { return children_; }
  double value() const { return value_; }
  std::int64_t integer() const { return integer_; }
  bool is_integer() const { return is_integer_; }

 private:
  std::vector<NestedList> children_;
  double value_ = 0;
  std::int64_t integer_ = 0;
  bool is_integer_ = false, is_list_ = false;
};

/// A tensor of the numbers in braces; int64 when all are integers, else float32, unless `dtype` says otherwise.
/// Errors: `ErrorKind::shape` for ragged lists.
Tensor tensor(std::initializer_list<NestedList> values);
Tensor tensor(std::initializer_list<NestedList> values, DType dtype);
Tensor tensor(double value);
Tensor scalar(double value, DType dtype);

/// A copy of `shape.numel()` elements at `data`.
template <class T>
[[gnu::visibility("default")]] Tensor from_data(const T* data, const Shape& shape);
template <class T>
[[gnu::visibility("default")]] Tensor from_data(const std::vector<T>& data, const Shape& shape);

/// Uninitialised.
Tensor empty(const Shape& shape, DType dtype = DType::float32);
Tensor zeros(const Shape& shape, DType dtype = DType::float32);
Tensor ones(const Shape& shape, DType dtype = DType::float32);
Tensor full(const Shape& shape, Scalar value, DType dtype = DType::float32);
Tensor empty_like(const Tensor& other);
Tensor zeros_like(const Tensor& other);
Tensor ones_like(const Tensor& other);
Tensor full_like(const Tensor& other, Scalar value);
Tensor rand_like(const Tensor& other);
Tensor randn_like(const Tensor& other);

/// start, start + step, ... below (above, for a negative step) `end`: ceil((end - start) / step) elements.
/// int64 when all arguments are integers, else float32, unless `dtype` says otherwise.
Tensor arange(Scalar end);
Tensor arange(Scalar start, Scalar end, Scalar step = 1);
Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype);
/// `steps` evenly spaced numbers from `start` to `end`, both included.
Tensor linspace(double start, double end, std::int64_t steps, DType dtype = DType::float32);
/// The n x m identity; m = n when left out.
Tensor eye(std::int64_t n, std::int64_t m = -1, DType dtype = DType::float32);

/// Random tensors draw from one counter-based stream a process, set by `manual_seed`; a given seed and sequence of
/// calls gives the same numbers on every machine and any number of threads. Not PyTorch's numbers.
void manual_seed(std::uint64_t seed);
/// Uniform in [0, 1).
Tensor rand(const Shape& shape, DType dtype = DType::float32);
/// Uniform in [low, high).
Tensor uniform(const Shape& shape, double low, double high, DType dtype = DType::float32);
/// Standard normal.
Tensor randn(const Shape& shape, DType dtype = DType::float32);
/// Integers in [low, high), int64.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape);
/// The numbers 0..n-1 in random order, int64.
Tensor randperm(std::int64_t n);

/// How many threads a kernel may use; results do not depend on it.
void set_num_threads(int n);
int get_num_threads();

/// With `on`, denormal numbers (below 1.2e-38 in float32, 2.2e-308 in float64) count as 0 in what this thread computes
/// from now on, on all threads that work for it: some processors take a hundred times longer for them. Off by default;
/// a training started from JSON switches it on. Returns whether the processor can.
bool set_flush_denormal(bool on);

/// The instruction set whose kernels run: "default", "avx2" or "avx512", the strongest this processor has or a weaker
/// one that the environment variable TAPER_CPU_CAPABILITY names; another name is ignored, with a sentence on standard
/// error. Results differ between sets in their last bits.
const char* get_cpu_capability();

}  // namespace taper

#pragma GCC visibility pop
