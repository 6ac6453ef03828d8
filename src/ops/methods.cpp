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

}  // namespace taper
