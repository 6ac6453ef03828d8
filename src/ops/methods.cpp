#include "taper/ops.hpp"

// The members of Tensor that are operations: each is the free function of the same name.
namespace taper {

Tensor Tensor::clone() const { return taper::clone(*this); }
Tensor Tensor::to(DType dtype) const { return taper::to(*this, dtype); }
Tensor Tensor::exp() const { return taper::exp(*this); }
Tensor Tensor::log() const { return taper::log(*this); }
Tensor Tensor::sqrt() const { return taper::sqrt(*this); }
Tensor Tensor::abs() const { return taper::abs(*this); }
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return taper::clamp(*this, min, max);
}
Tensor Tensor::tanh() const { return taper::tanh(*this); }
Tensor Tensor::sigmoid() const { return taper::sigmoid(*this); }
Tensor Tensor::relu() const { return taper::relu(*this); }
Tensor Tensor::pow(Scalar exponent) const { return taper::pow(*this, exponent); }

Tensor Tensor::reshape(const Shape& shape) const {
  return taper::reshape(*this, std::span(shape.begin(), shape.end()));
}
Tensor Tensor::reshape(std::initializer_list<std::int64_t> shape) const { return taper::reshape(*this, shape); }
Tensor Tensor::view(std::initializer_list<std::int64_t> shape) const { return taper::view(*this, shape); }
Tensor Tensor::flatten(std::int64_t start_dim, std::int64_t end_dim) const {
  return taper::flatten(*this, start_dim, end_dim);
}
Tensor Tensor::squeeze() const { return taper::squeeze(*this); }
Tensor Tensor::squeeze(std::int64_t dim) const { return taper::squeeze(*this, dim); }
Tensor Tensor::unsqueeze(std::int64_t dim) const { return taper::unsqueeze(*this, dim); }
Tensor Tensor::expand(std::initializer_list<std::int64_t> shape) const { return taper::expand(*this, shape); }
Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const { return taper::transpose(*this, dim0, dim1); }
Tensor Tensor::permute(std::initializer_list<std::int64_t> dims) const { return taper::permute(*this, dims); }
Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  return taper::narrow(*this, dim, start, length);
}
Tensor Tensor::select(std::int64_t dim, std::int64_t index) const { return taper::select(*this, dim, index); }
Tensor Tensor::index_select(std::int64_t dim, const Tensor& index) const {
  return taper::index_select(*this, dim, index);
}
Tensor Tensor::gather(std::int64_t dim, const Tensor& index) const { return taper::gather(*this, dim, index); }

Tensor Tensor::sum() const { return taper::sum(*this); }
Tensor Tensor::sum(const Dims& dims, bool keepdim) const { return taper::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return taper::mean(*this); }
Tensor Tensor::mean(const Dims& dims, bool keepdim) const { return taper::mean(*this, dims, keepdim); }
Tensor Tensor::var(const Dims& dims, bool keepdim) const { return taper::var(*this, dims, keepdim); }
Tensor Tensor::std(const Dims& dims, bool keepdim) const { return taper::std(*this, dims, keepdim); }
Tensor Tensor::max() const { return taper::max(*this); }
Tensor Tensor::min() const { return taper::min(*this); }
Tensor Tensor::amax(const Dims& dims, bool keepdim) const { return taper::amax(*this, dims, keepdim); }
Tensor Tensor::amin(const Dims& dims, bool keepdim) const { return taper::amin(*this, dims, keepdim); }
Tensor Tensor::prod() const { return taper::prod(*this); }
Tensor Tensor::argmax() const { return taper::argmax(*this); }
Tensor Tensor::argmax(std::int64_t dim, bool keepdim) const { return taper::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin() const { return taper::argmin(*this); }
Tensor Tensor::argmin(std::int64_t dim, bool keepdim) const { return taper::argmin(*this, dim, keepdim); }
Tensor Tensor::logsumexp(const Dims& dims, bool keepdim) const { return taper::logsumexp(*this, dims, keepdim); }
Tensor Tensor::norm() const { return taper::norm(*this); }
Tensor Tensor::softmax(std::int64_t dim) const { return taper::softmax(*this, dim); }
Tensor Tensor::log_softmax(std::int64_t dim) const { return taper::log_softmax(*this, dim); }
Tensor Tensor::matmul(const Tensor& other) const { return taper::matmul(*this, other); }

}  // namespace taper
