#include "cli/table.hpp"

#include <algorithm>

namespace taper::cli {

namespace {

/// Code points: what a terminal shows, as long as nothing is wide or combining.
std::size_t width_of(std::string_view text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool is_number(std::string_view text) {
  return text == "-" || (!text.empty() && text.find_first_not_of("0123456789,.") == std::string_view::npos);
}

}  // namespace

Table::Table(std::vector<std::string> heading) : rows_{std::move(heading)}, has_heading_(true) {}

void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::string Table::to_string() const {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    widths.resize(std::max(widths.size(), rows_[r].size()));
    right.resize(widths.size(), true);
    for (std::size_t c = 0; c < rows_[r].size(); ++c) {
      widths[c] = std::max(widths[c], width_of(rows_[r][c]));
      if (r > 0 || !has_heading_) right[c] = right[c] && is_number(rows_[r][c]);
    }
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string gap(widths[c] - width_of(cells[c]), ' ');
      line += (c == 0 ? "" : "  ") + (right[c] ? gap + cells[c] : cells[c] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    add_line(rows_[r]);
    if (r > 0 || !has_heading_) continue;
    std::vector<std::string> rule;
    for (const std::size_t width : widths) rule.emplace_back(width, '-');
    add_line(rule);
  }
  return text;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace taper::cli
