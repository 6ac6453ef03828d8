#pragma once

#include <string>

#include "taper/error.hpp"

namespace taper::test {

/// The sentence of the error that `f()` throws.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace taper::test
