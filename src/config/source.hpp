#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taper::config {

/// A stretch of a text, in bytes from its start.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A place as editors count it: both numbers start at 1, a column is one code point.
struct Position {
  std::int64_t line = 1;
  std::int64_t column = 1;
};

/// A text with the name it is reported under.
class Source {
 public:
  Source(std::string file, std::string text);

  const std::string& file() const { return file_; }
  const std::string& text() const { return text_; }
  std::string_view slice(Span span) const { return std::string_view(text_).substr(span.begin, span.end - span.begin); }

  /// Where the byte at `offset` stands; `offset` may be the text's end. A byte order mark takes no column.
  Position position(std::size_t offset) const;

  /// The line of `span` as compilers show it: the line with its number, below it a caret and an underline.
  /// Long lines are cut around the caret, tabs become spaces, and what a terminal would obey or misread becomes
  /// U+FFFD. Of a span over several lines only the first is shown.
  std::string excerpt(Span span) const;

 private:
  std::string_view line(std::int64_t number) const;

  std::string file_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

/// "line 3, column 5".
std::string to_string(Position position);

/// `text` fit for a message: control characters in JSON's escapes, broken UTF-8 as U+FFFD, and no more than `most`
/// code points, with "..." for the rest.
std::string shown(std::string_view text, std::size_t most = 60);

}  // namespace taper::config
