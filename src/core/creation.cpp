#include "taper/creation.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "core/dispatch.hpp"
#include "core/node.hpp"

namespace taper {

Tensor empty(const Shape& shape, DType dtype) {
  const auto bytes = checked::mul(shape.numel(), std::int64_t(size_of(dtype)));
  if (!bytes) [[unlikely]]
    fail(ErrorKind::shape, "empty: number of bytes overflows 64 bits: expected below 2^63, got shape ", shape);
  return detail::adopt(detail::new_buffer(std::size_t(*bytes)), shape, dtype);
}

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

}  // namespace taper
