#pragma once

#include <string>
#include <string_view>

/// The bytes that pairs of lower-case hexadecimal digits stand for.
inline std::string unhex(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) bytes += char(value(digits[i]) * 16 + value(digits[i + 1]));
  return bytes;
}
