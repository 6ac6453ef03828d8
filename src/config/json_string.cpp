#include "config/json_string.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/fail.hpp"
#include "base/utf8.hpp"
#include "config/json_bare.hpp"

namespace taper::config {

namespace {

constexpr std::string_view kEscapes = "\"\\/bfnrt";
constexpr std::string_view kEscaped = "\"\\/\b\f\n\r\t";
constexpr std::size_t kUnitSize = 6;  // \uXXXX

bool is_high(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

/// The UTF-16 unit of the escape `\uXXXX` at the start of `text`.
std::optional<std::uint32_t> unit_of(std::string_view text) {
  if (!text.starts_with("\\u") || text.size() < kUnitSize) return std::nullopt;
  unsigned value = 0;
  const char* end = text.data() + kUnitSize;
  const auto [stop, error] = std::from_chars(text.data() + 2, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// The code point of the escape or escapes at the start of `text` and their length; length 0 when they are faulty.
CodePoint decode_unit_escape(std::string_view text) {
  const auto high = unit_of(text);
  if (!high || is_low(*high)) return {};
  if (!is_high(*high)) return {*high, kUnitSize};
  const auto low = unit_of(text.substr(kUnitSize));
  if (!low || !is_low(*low)) return {};
  return {0x10000 + ((*high - 0xD800) << 10 | (*low - 0xDC00)), 2 * kUnitSize};
}

std::string hexadecimal(unsigned value) {
  char digits[8];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
  if (text.size() < 2) text.insert(0, 1, '0');
  return text;
}

std::string control_message(char c) {
  const std::size_t escape = kEscaped.find(c);
  const std::string written = escape != std::string_view::npos ? cat("\\", kEscapes[escape])
                                                               : cat("\\u00", hexadecimal(static_cast<unsigned>(c)));
  return cat("control character in a string: expected the escape ", written, ", got the byte 0x",
             hexadecimal(static_cast<unsigned>(c)));
}

std::string encoding_message(char c) {
  return cat("invalid UTF-8: expected text in UTF-8, got the byte 0x", hexadecimal(static_cast<unsigned char>(c)),
             "; save the file as UTF-8");
}

StringFault escape_fault(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (const auto unit = unit_of(rest)) {
    const std::string_view written = rest.substr(0, kUnitSize);
    return {{at, at + kUnitSize},
            is_high(*unit) ? cat("lone surrogate: expected ", written, " to be followed by one of \\udc00 to \\udfff")
                           : cat("lone surrogate: expected one of \\ud800 to \\udbff before ", written)};
  }
  if (rest.starts_with("\\u")) {
    std::size_t size = 2;
    while (size < kUnitSize && size < rest.size() && is_bare(rest[size])) ++size;
    return {{at, at + size},
            cat("unknown escape: expected \\u and four hexadecimal digits, got ", shown(rest.substr(0, size)))};
  }
  const std::size_t size = 1 + decode_utf8(rest.substr(1)).size;
  return {{at, at + size},
          cat("unknown escape: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX, got ",
              shown(rest.substr(0, size)), "; write \\\\ for a backslash")};
}

/// Length of the escape at `at`, which starts with a backslash; 0 when it is faulty.
std::size_t escape_size(std::string_view rest) {
  if (rest.size() > 1 && kEscapes.find(rest[1]) != std::string_view::npos) return 2;
  return decode_unit_escape(rest).size;
}

}  // namespace

ScannedString scan_string(std::string_view text, std::size_t begin) {
  ScannedString scanned;
  const auto add = [&](StringFault fault) {
    if (scanned.faults.size() < kMostFaults) scanned.faults.push_back(std::move(fault));
  };
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != '"' && text[at] != '\n' && text[at] != '\r') {
    const std::string_view rest = text.substr(at);
    const CodePoint point = decode_utf8(rest);
    std::size_t size = std::max<std::size_t>(point.size, 1);
    if (rest[0] == '\\') {
      size = escape_size(rest);
      if (size == 0) {
        StringFault fault = escape_fault(text, at);
        size = fault.span.end - at;
        add(std::move(fault));
      }
    } else if (point.size == 0) {
      add({{at, at + 1}, encoding_message(rest[0]), true});
    } else if (point.value < 0x20) {
      add({{at, at + 1}, control_message(rest[0])});
    }
    at += size;
  }
  scanned.is_closed = at < text.size() && text[at] == '"';
  scanned.end = scanned.is_closed ? at + 1 : at;
  return scanned;
}

std::string unescape(std::string_view token) {
  std::string out;
  std::string_view rest = token.substr(1, token.size() - 2);
  while (!rest.empty()) {
    CodePoint point = decode_utf8(rest);
    if (rest.size() > 1 && rest[0] == '\\') {
      const std::size_t escape = kEscapes.find(rest[1]);
      point = escape != std::string_view::npos ? CodePoint{static_cast<unsigned char>(kEscaped[escape]), 2}
                                               : decode_unit_escape(rest);
    }
    if (point.size == 0) point = {0xFFFD, 1};
    append_utf8(out, point.value);
    rest.remove_prefix(point.size);
  }
  return out;
}

}  // namespace taper::config
