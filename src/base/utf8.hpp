#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace taper {

/// Offset of the first byte that is not part of well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates,
/// nothing above U+10FFFF), or `npos` when all of it is.
std::size_t find_invalid_utf8(std::string_view text);

/// Appends the UTF-8 form of a code point up to U+10FFFF.
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace taper
