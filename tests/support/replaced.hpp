#pragma once

#include <type_traits>
#include <utility>

namespace taper::test {

/// Gives a variable another value while this lives.
template <class T>
class Replaced {
 public:
  Replaced(T& variable, std::type_identity_t<T> value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Replaced() { variable_ = before_; }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  T& variable_;
  const T before_;
};

}  // namespace taper::test
