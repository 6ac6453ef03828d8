#pragma once

#include <string>
#include <vector>

namespace taper::test {

/// All matches of a pattern in a text, with their groups from 1 on (up to 3). The pattern is an extended one of POSIX, in
/// which `.` and `[^x]` do not match the end of a line, `^` and `$` match at every line, and a match is not empty.
std::vector<std::vector<std::string>> matches(const std::string& text, const std::string& pattern);

}  // namespace taper::test
