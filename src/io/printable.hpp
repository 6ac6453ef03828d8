#pragma once

#include <string>
#include <string_view>

namespace taper::io {

/// Text of a file as an error sentence shows it: at most 60 bytes, control characters as `?`.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kLimit = 60;
  std::size_t shown = text.size() <= kLimit ? text.size() : kLimit;
  // Not in the middle of a UTF-8 sequence.
  while (shown > 0 && shown < text.size() && (text[shown] & 0xC0) == 0x80) --shown;
  std::string out(text.substr(0, shown));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return shown < text.size() ? out + "..." : out;
}

}  // namespace taper::io
