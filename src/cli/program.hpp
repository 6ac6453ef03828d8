#pragma once

#include <string>
#include <vector>

namespace taper::cli {

/// The program without its name: carries out the verb that `words` begin with and returns the exit code. Nothing is
/// thrown; every error is a sentence on standard error.
int run_program(const std::vector<std::string>& words);

}  // namespace taper::cli
