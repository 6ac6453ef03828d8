#include "support/matches.hpp"

#include <regex>

namespace taper::test {

std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern, std::regex::multiline);
  std::vector<std::vector<std::string>> found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it)
    found.emplace_back(std::next(it->begin()), it->end());
  return found;
}

}  // namespace taper::test
