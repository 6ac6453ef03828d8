#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "support/json.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

/// Reading of the stored values of tests/golden, whose form its README describes.
namespace taper::test {

/// With `Json` = `nlohmann::ordered_json` the keys of objects keep their order.
template <class Json = nlohmann::json>
Json read_golden(const std::string& name) {
  return parsed<Json>(slurp(std::string(TAPER_SOURCE_DIR) + "/tests/golden/" + name));
}

/// A number, or one of "nan", "inf", "-inf".
template <class Json>
double golden_number(const Json& value) {
  if (value.is_number()) return value.template get<double>();
  const auto word = value.template get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

/// Whole numbers stay int64, everything else takes `dtype`.
template <class Json>
Tensor golden_tensor(const Json& stored, DType dtype) {
  const auto extents = stored.at("shape").template get<std::vector<std::int64_t>>();
  std::vector<double> values;
  const double over = stored.value("over", 1.0);
  for (const auto& value : stored.at("data")) values.push_back(golden_number(value) / over);
  const Tensor wide = from_data(values, Shape(std::span<const std::int64_t>(extents)));
  return to(wide, stored.contains("dtype") ? DType::int64 : dtype);
}

/// How far a value may lie from the stored one: `relative` to it, or to `floor` where it is smaller. With `overflow`
/// set, larger values may come out as infinite.
struct Tolerance {
  double relative, floor, overflow = std::numeric_limits<double>::infinity();
};
inline constexpr Tolerance kFloat64Tolerance{1e-12, 1e-3};
inline constexpr Tolerance kFloat32Tolerance{1e-5, 1, 1e37};  // what it is computed from may overflow earlier

/// Where `actual` differs from `expected`, or "" if nowhere.
inline std::string golden_difference(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  if (!(actual.shape() == expected.shape()))
    return "shape " + to_string(actual.shape()) + ", expected " + to_string(expected.shape());
  const auto a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(e[i]) ? std::isnan(a[i]) : a[i] == e[i]) continue;
    if (std::abs(a[i] - e[i]) <= tolerance.relative * std::max(tolerance.floor, std::abs(e[i]))) continue;
    if (std::abs(e[i]) > tolerance.overflow && std::isinf(a[i]) && (a[i] > 0) == (e[i] > 0)) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + ", expected " + std::to_string(e[i]);
  }
  return "";
}

}  // namespace taper::test
