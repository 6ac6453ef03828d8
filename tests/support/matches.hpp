#pragma once

#include <string>
#include <vector>

namespace taper::test {

/// All matches of a pattern (ECMAScript's, `^` and `$` at every line) in a text, with their groups from 1 on. Compiled
/// once, in matches.cpp, as regular expressions take the compiler seconds.
std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern);

}  // namespace taper::test
