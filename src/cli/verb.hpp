#pragma once

#include <memory>
#include <span>

#include "cli/arguments.hpp"

namespace taper::cli {

/// One verb while it is carried out: its options are declared, parsed into the members, and used.
class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Arguments& arguments) = 0;
  /// Returns the exit code; errors are thrown.
  virtual int run() = 0;

  std::string command_line;  ///< as it was typed, for records
};

/// A verb as the program lists it.
struct Verb {
  const char* name;
  const char* summary;   ///< one line
  const char* examples;  ///< what --help adds to -h
  std::unique_ptr<Command> (*make)();
};

/// All verbs, in the order of the help.
std::span<const Verb> verbs();

template <class C>
std::unique_ptr<Command> make_command() {
  return std::make_unique<C>();
}

// One a file, verb_NAME.cpp.
extern const Verb kTrain, kEval, kPredict, kRun, kSummary, kLayers, kEnv;

}  // namespace taper::cli
