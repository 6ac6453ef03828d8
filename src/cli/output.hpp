#pragma once

#include <string_view>

namespace taper::cli {

/// Makes a closed pipe an answer of `write` instead of a signal, and sees to it that no file that is opened later takes
/// the place of a standard stream that was closed. Call it first.
void prepare_streams();

/// Data, to standard output. Errors: `ErrorKind::io` with the system's reason. Once the reader has closed the pipe
/// nothing is written any more: who no longer reads no longer wants.
void print(std::string_view text);

/// Talk, to standard error; lost when that fails.
void say(std::string_view text);

}  // namespace taper::cli
