#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace taper {

/// A code point and the bytes it takes; `size` is 0 when the bytes are not UTF-8.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t size = 0;
};

/// The code point at the start of `text`, by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
/// An empty text has none.
CodePoint decode_utf8(std::string_view text);

/// Offset of the first byte that is not part of well-formed UTF-8 (as `decode_utf8`), or `npos` when all of it is.
std::size_t find_invalid_utf8(std::string_view text);

/// Appends the UTF-8 form of a code point up to U+10FFFF.
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace taper
