#include "support/matches.hpp"

#include <regex.h>

#include <array>
#include <stdexcept>

namespace taper::test {

std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern) {
  regex_t expression;
  if (regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NEWLINE) != 0)
    throw std::invalid_argument("no regular expression: " + pattern);
  std::vector<std::vector<std::string>> found;
  std::array<regmatch_t, 4> groups;
  groups[0] = {0, regoff_t(text.size())};
  while (regexec(&expression, text.c_str(), groups.size(), groups.data(), REG_STARTEND) == 0) {
    found.emplace_back();
    for (std::size_t i = 1; i <= expression.re_nsub; ++i) {
      const auto [from, to] = groups.at(i);  // -1 of a group that took no part
      found.back().push_back(from < 0 ? "" : text.substr(std::size_t(from), std::size_t(to - from)));
    }
    groups[0] = {groups[0].rm_eo, regoff_t(text.size())};
  }
  regfree(&expression);
  return found;
}

}  // namespace taper::test
