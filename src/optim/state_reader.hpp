#pragma once

#include <string>
#include <vector>

#include "base/fail.hpp"
#include "taper/tensor.hpp"

namespace taper::optim {

/// Takes tensors out of a state dict by name, and knows which were never asked for.
class StateReader {
 public:
  StateReader(const char* where, const std::vector<NamedTensor>& state)
      : where_(where), state_(state), taken_(state.size()) {}

  const Tensor* find(const std::string& name) {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].name != name) continue;
      taken_[i] = true;
      return &state_[i].tensor;
    }
    return nullptr;
  }

  const Tensor& take(const std::string& name, const Shape& shape, bool floating) {
    const Tensor* tensor = find(name);
    if (!tensor)
      fail(ErrorKind::config, where_, ": the state is not complete: expected ", name, ", got none of that name");
    if (!(tensor->shape() == shape))
      fail(ErrorKind::shape, where_, ": ", name, " has another shape: expected ", shape, ", got ", tensor->shape());
    if (is_floating(tensor->dtype()) != floating)
      fail(ErrorKind::type, where_, ": ", name, " has another element type: expected ",
           floating ? "float32 or float64" : "int64", ", got ", tensor->dtype());
    return *tensor;
  }

  void refuse_rest() const {
    for (std::size_t i = 0; i < state_.size(); ++i)
      if (!taken_[i])
        fail(ErrorKind::config, where_, ": the state belongs to something else: expected its own names only, got ",
             state_[i].name);
  }

 private:
  const char* where_;
  const std::vector<NamedTensor>& state_;
  std::vector<bool> taken_;
};

}  // namespace taper::optim
