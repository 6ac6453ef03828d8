#pragma once

#include "taper/creation.hpp"
#include "taper/ops.hpp"

namespace taper::test {

/// A way to change a tensor of floating-point numbers in place.
struct InPlace {
  const char* name;
  void (*change)(const Tensor&);
};

inline constexpr InPlace kInPlace[] = {
    {"add_", [](const Tensor& t) { t.add_(ones_like(t)); }},
    {"add_ number", [](const Tensor& t) { t.add_(1); }},
    {"add_ scaled", [](const Tensor& t) { t.add_(ones_like(t), 2); }},
    {"sub_", [](const Tensor& t) { t.sub_(ones_like(t)); }},
    {"mul_", [](const Tensor& t) { t.mul_(full_like(t, 3)); }},
    {"mul_ number", [](const Tensor& t) { t.mul_(3); }},
    {"div_", [](const Tensor& t) { t.div_(full_like(t, 3)); }},
    {"zero_", [](const Tensor& t) { t.zero_(); }},
    {"fill_", [](const Tensor& t) { t.fill_(0.3); }},
    {"copy_", [](const Tensor& t) { t.copy_(full_like(t, 0.7)); }},
    {"a view's add_", [](const Tensor& t) { t.reshape({-1}).add_(1); }},
};

}  // namespace taper::test
