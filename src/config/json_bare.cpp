#include "config/json_bare.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/fail.hpp"
#include "config/source.hpp"

namespace taper::config {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// JSON's grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
bool is_json_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t integer = at;
  at = skip_digits(text, at);
  if (at == integer || (text[integer] == '0' && at > integer + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = at + 1;
    at = skip_digits(text, fraction);
    if (at == fraction) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = at;
    at = skip_digits(text, exponent);
    if (at == exponent) return false;
  }
  return at == text.size();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// Whether `number`, which is outside the range of double, is too near to zero: whether its decimal exponent is
/// negative.
bool is_too_small(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  const std::string_view digits = number.substr(0, number.find_first_of("eE"));
  std::string_view exponent = number.substr(std::min(digits.size() + 1, number.size()));
  const bool is_negative = exponent.starts_with('-');
  if (exponent.starts_with('+') || is_negative) exponent.remove_prefix(1);
  std::int64_t shift = 0;
  const auto result = std::from_chars(exponent.data(), exponent.data() + exponent.size(), shift);
  if (result.ec == std::errc::result_out_of_range) return is_negative;
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(std::min(digits.find_first_of("123456789"), digits.size()));
  return (is_negative ? -shift : shift) < first - point;
}

std::string fault_of_range(std::string_view number) {
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec == std::errc() && std::isfinite(value)) return "";
  if (is_too_small(number)) {
    return cat("number out of range: expected 0 or a size of at least 4.94e-324, got ", shown(number));
  }
  return cat("number out of range: expected a size of at most 1.797e+308, got ", shown(number));
}

std::string fault_of_number(std::string_view text) {
  const std::size_t sign = text[0] == '+' || text[0] == '-' ? 1 : 0;
  const std::size_t point = text.find('.');
  std::string hint;
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) {
    hint = "; a number has decimal digits only";
  } else if (text[0] == '+') {
    hint = "; a number has no plus sign";
  } else if (sign + 1 < text.size() && text[sign] == '0' && is_digit(text[sign + 1])) {
    hint = "; a number has no leading zeros";
  } else if (point != std::string_view::npos &&
             (point == sign || point + 1 == text.size() || !is_digit(text[point + 1]))) {
    hint = "; a number has digits on both sides of its point";
  }
  return cat("expected a number, got ", shown(text), hint);
}

}  // namespace

std::string fault_of_bare(std::string_view word) {
  if (word == "true" || word == "false" || word == "null") return "";
  if (is_json_number(word)) return fault_of_range(word);

  const std::string name = lower(word.substr(0, 16));
  const std::string unsigned_name = name.substr(name.find_first_not_of("+-") == 1 ? 1 : 0);
  if (unsigned_name == "nan" || unsigned_name == "inf" || unsigned_name == "infinity") {
    return cat("expected a finite number, got ", word, "; JSON has no NaN and no infinity");
  }
  if (name == "true" || name == "false") return cat("expected a value, got ", word, "; write ", name);
  if (name == "null" || name == "none" || name == "nil" || name == "undefined") {
    return cat("expected a value, got ", word, "; write null");
  }
  if (is_digit(word[0]) || word[0] == '+' || word[0] == '-' || word[0] == '.') return fault_of_number(word);
  return cat("expected a value, got ", shown(word), "; a string is written \"", shown(word), "\"");
}

}  // namespace taper::config
