#include "config/source.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/fail.hpp"
#include "base/utf8.hpp"

namespace taper::config {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::size_t kWidth = 100;       // columns of a line that are shown
constexpr std::size_t kBeforeCaret = 40;  // of them, those before the caret when the line is cut

/// Controls, and marks that change the direction of the text around them.
bool is_unprintable(std::uint32_t value) {
  return value < 0x20 || (value >= 0x7F && value < 0xA0) || value == 0x200E || value == 0x200F ||
         (value >= 0x2028 && value <= 0x202E) || (value >= 0x2066 && value <= 0x2069) || value == 0xFEFF;
}

/// The code point at the start of `text`, where a byte that is no UTF-8 counts as one replacement character.
CodePoint decode_any(std::string_view text) {
  const CodePoint point = decode_utf8(text);
  return point.size == 0 ? CodePoint{0xFFFD, 1} : point;
}

std::size_t count_code_points(std::string_view text, std::size_t most = std::string_view::npos) {
  std::size_t count = 0;
  for (; !text.empty() && count < most; ++count) text.remove_prefix(decode_any(text).size);
  return count;
}

}  // namespace

Source::Source(std::string file, std::string text) : file_(std::move(file)), text_(std::move(text)) {
  line_starts_.push_back(text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

Position Source::position(std::size_t offset) const {
  offset = std::clamp(offset, line_starts_.front(), text_.size());
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::size_t start = *(next - 1);
  return {next - line_starts_.begin(), static_cast<std::int64_t>(count_code_points(slice({start, offset}))) + 1};
}

std::string_view Source::line(std::int64_t number) const {
  const auto index = static_cast<std::size_t>(number - 1);
  const std::size_t end = index + 1 < line_starts_.size() ? line_starts_[index + 1] - 1 : text_.size();
  std::string_view view = slice({line_starts_[index], end});
  if (view.ends_with('\r')) view.remove_suffix(1);
  return view;
}

std::string Source::excerpt(Span span) const {
  const Position from = position(span.begin);
  std::string_view rest = line(from.line);
  const auto caret = static_cast<std::size_t>(from.column - 1);
  const auto before_caret = span.begin - std::min(span.begin, static_cast<std::size_t>(rest.data() - text_.data()));
  const std::string_view from_caret = rest.substr(std::min(before_caret, rest.size()));
  const std::size_t length = caret + count_code_points(from_caret, kWidth + 1);
  const bool is_long = length > kWidth;
  const std::size_t first = is_long && caret > kBeforeCaret ? caret - kBeforeCaret : 0;
  const std::size_t last = is_long ? std::min(length, first + kWidth) : length;

  std::string text = first > 0 ? "..." : "";
  for (std::size_t column = 0; column < last && !rest.empty(); ++column) {
    const CodePoint point = decode_any(rest);
    if (column >= first) {
      if (point.value == '\t') {
        text += ' ';
      } else {
        text += is_unprintable(point.value) || point.value == 0xFFFD ? kReplacement : rest.substr(0, point.size);
      }
    }
    rest.remove_prefix(point.size);
  }
  if (last < length) text += "...";

  const std::size_t indent = caret - first + (first > 0 ? 3 : 0);
  const std::size_t visible = last > caret ? last - caret : 0;
  const std::size_t underlined = count_code_points(slice(span), visible);
  std::string number = cat(from.line);
  if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
  return cat(number, text.empty() ? " |" : " | ", text, "\n", std::string(number.size(), ' '), " | ",
             std::string(indent, ' '), "^", std::string(underlined > 0 ? underlined - 1 : 0, '~'), "\n");
}

std::string to_string(Position position) { return cat("line ", position.line, ", column ", position.column); }

std::string shown(std::string_view text, std::size_t most) {
  std::string out;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return out + "...";
    const CodePoint point = decode_any(text);
    if (is_unprintable(point.value)) {
      char escape[16];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(point.value));
      out += escape;
    } else if (point.value == 0xFFFD) {
      out += kReplacement;
    } else {
      out += text.substr(0, point.size);
    }
    text.remove_prefix(point.size);
  }
  return out;
}

}  // namespace taper::config
