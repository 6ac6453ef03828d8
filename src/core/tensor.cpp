#include "taper/tensor.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "core/capture.hpp"
#include "core/dispatch.hpp"
#include "kernels/elementwise.hpp"

namespace taper {

Dims::Dims(std::initializer_list<std::int64_t> dims) {
  if (dims.size() > std::size_t(Shape::kMaxRank))
    fail(ErrorKind::shape, "dims: too many dimensions: expected at most ", Shape::kMaxRank, ", got ", dims.size());
  for (const std::int64_t dim : dims) dims_[size_++] = dim;
}

void Tensor::fail_undefined() { fail(ErrorKind::tape, "tensor: undefined: expected a tensor, got an empty handle"); }

std::int64_t Tensor::size(std::int64_t dim) const { return shape()[normalize_dim("size", dim, shape().rank())]; }

void* Tensor::typed_data(DType dtype) const {
  if (dtype != checked().dtype)
    fail(ErrorKind::type, "data: element type differs: expected ", checked().dtype, ", got ", dtype);
  if (detail::recorder) [[unlikely]]
    detail::recorder->touches_elements(*impl_);
  return impl_->buffer->data();
}

double Tensor::item() const {
  if (numel() != 1)
    fail(ErrorKind::shape, "item: the tensor must have one element: expected 1, got ", numel(), " in shape ", shape());
  return to_vector<double>()[0];
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  std::vector<T> out(static_cast<std::size_t>(numel()));
  visit_dtype(dtype(), [&]<class From>(Type<From>) { kernels::cast(data<From>(), out.data(), numel()); });
  return out;
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;

Tensor Tensor::requires_grad_(bool on) const {
  if (on && !is_floating(checked().dtype))
    fail(ErrorKind::type,
         "requires_grad_: only floating tensors have gradients: expected float32 or float64, got int64");
  if (on && !impl_->node) {
    impl_->node = detail::new_leaf_node(*impl_);
    impl_->history = impl_->buffer->history;
    if (detail::recorder) [[unlikely]]
      detail::recorder->made_leaf(*impl_->node);
  }
  if (!on && checked().node) {
    if (!is_leaf())
      fail(ErrorKind::tape, "requires_grad_: cannot be switched off on a result: expected a leaf, got the output of ",
           impl_->node->op->name, "; use detach()");
    detail::release(std::exchange(impl_->node, nullptr));
  }
  return *this;
}

bool Tensor::is_leaf() const { return !checked().node || impl_->node->is_leaf(); }

Tensor Tensor::grad() const {
  detail::Node* node = checked().node;
  if (detail::recorder && node) [[unlikely]]
    detail::recorder->reads_gradient(*node);
  return node && node->extra ? node->extra->gradient : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) const {
  if (!gradient.defined()) {
    if (detail::recorder && checked().node) [[unlikely]]
      detail::recorder->drops_gradient(*impl_->node);
    if (checked().node && impl_->node->extra) impl_->node->extra->gradient = Tensor();
    return;
  }
  if (!requires_grad())
    fail(ErrorKind::tape, "set_grad: the tensor does not require grad: expected requires_grad true, got false");
  if (!(gradient.shape() == shape()) || gradient.dtype() != dtype())
    fail(ErrorKind::shape, "set_grad: the gradient does not fit the tensor: expected ", dtype(), " ", shape(), ", got ",
         gradient.dtype(), " ", gradient.shape());
  impl_->node->ensure_extra().gradient = gradient;
  if (detail::recorder) [[unlikely]]
    detail::recorder->set_gradient(*impl_->node);
}

void Tensor::retain_grad() const {
  if (!requires_grad())
    fail(ErrorKind::tape, "retain_grad: the tensor does not require grad: expected requires_grad true, got false");
  impl_->node->ensure_extra().retain_gradient = true;
}

void Tensor::add_hook(GradientHook* adopted) const {
  std::unique_ptr<GradientHook> hook(adopted);
  if (!requires_grad())
    fail(ErrorKind::tape, "register_hook: the tensor does not require grad: expected requires_grad true, got false");
  impl_->node->ensure_extra().hooks.push_back(std::move(hook));
}

Tensor Tensor::set_name(const std::string& name) const {
  if (requires_grad()) impl_->node->ensure_extra().name = name;
  return *this;
}

Tensor Tensor::detach() const { return detail::adopt(detail::retain(checked().buffer), impl_->shape, impl_->dtype); }

}  // namespace taper
