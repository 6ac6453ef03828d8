#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "config/diagnostics.hpp"

namespace taper::cli {

/// What the program tells its caller.
enum Exit : int {
  kDone = 0,
  kFailed = 1,    ///< data, files, a run that diverged
  kUsage = 2,     ///< a wrong command line or config
  kGate = 3,      ///< a quality gate was not met
  kSignal = 128,  ///< stopped by a signal after saving: this plus its number
};

/// Ends the program with an exit code of its own; every other error's code follows from its kind.
class Failure : public std::runtime_error {
 public:
  Failure(Exit code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  Exit code() const noexcept { return code_; }

 private:
  Exit code_;
};

/// Refuses a command line.
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Failure(kUsage, cat(parts...));
}

/// Calls `body`; whatever error it throws ends the program with `code`, but a `ConfigError` keeps its own form and
/// code.
template <class Body>
decltype(auto) failing_with(Exit code, const Body& body) {
  try {
    return body();
  } catch (const config::ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw Failure(code, error.what());
  }
}

}  // namespace taper::cli
