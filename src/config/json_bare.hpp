#pragma once

#include <string>
#include <string_view>

namespace taper::config {

/// Whether `c` may stand in a bare word: what numbers and literals are made of, and what people write in their place.
inline bool is_bare(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
         c == '.' || c == '_' || c == '$';
}

/// What is wrong with the bare word `word` as a JSON value: "" for `true`, `false`, `null` and for numbers in JSON's
/// form that a double holds.
std::string fault_of_bare(std::string_view word);

}  // namespace taper::config
