#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taper::cli {

/// Text in columns, two blanks apart; columns that hold only numbers are aligned on the right.
class Table {
 public:
  /// With a heading, a line is drawn below it.
  Table() = default;
  explicit Table(std::vector<std::string> heading);

  void add(std::vector<std::string> row);
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  bool has_heading_ = false;
};

/// "12,345,678".
std::string grouped(std::int64_t number);

}  // namespace taper::cli
