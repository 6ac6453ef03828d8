#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/source.hpp"

namespace taper::config {

/// What is wrong inside one string of a JSON text.
struct StringFault {
  Span span;
  std::string message;
  bool is_encoding = false;  ///< bytes that are not UTF-8
};

/// A hostile string can have a fault in every byte.
inline constexpr std::size_t kMostFaults = 100;

struct ScannedString {
  std::size_t end = 0;  ///< offset after the closing quote; after the last byte looked at if there is none
  bool is_closed = false;
  std::vector<StringFault> faults;  ///< the first `kMostFaults`
};

/// Checks the string whose opening quote is at `begin`: UTF-8, escapes, surrogate pairs, control characters. Goes on
/// after what is wrong inside it; stops at the end of the line, which no string crosses.
ScannedString scan_string(std::string_view text, std::size_t begin);

/// The characters between the quotes of `token`, escapes resolved; what is faulty becomes U+FFFD.
std::string unescape(std::string_view token);

}  // namespace taper::config
