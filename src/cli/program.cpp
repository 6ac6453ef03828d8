#include "cli/program.hpp"

#include <algorithm>
#include <new>

#include "base/nearest.hpp"
#include "cli/failure.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "config/diagnostics.hpp"
#include "io/printable.hpp"

namespace taper::cli {

namespace {

constexpr const char* kMoreHelp = R"(
Standard output carries data, standard error everything said to you.
Exit codes: 0 done, 1 the run failed, 2 wrong usage or config, 3 a quality gate was not met,
130 and 143 stopped by Ctrl-C or SIGTERM after saving.

Examples:
  taper train forum.json
  taper layers AvgPool2d
  taper summary forum.json
  taper run forum.json --weights w.safetensors --input x.npy --output out.safetensors
)";

std::string overview() {
  std::string text = "taper: small neural networks from JSON\n\nUsage: taper VERB [OPTIONS]\n\nVerbs:\n";
  Table table;
  for (const Verb& verb : verbs()) table.add({std::string("  ") + verb.name, verb.summary});
  return text + table.to_string() + "\ntaper VERB -h tells more, taper --version which one this is.\n";
}

const Verb& find_verb(const std::string& name) {
  std::vector<std::string_view> names;
  std::string list;
  for (const Verb& verb : verbs()) {
    if (name == verb.name) return verb;
    names.push_back(verb.name);
    list += cat(list.empty() ? "" : ", ", verb.name);
  }
  refuse("unknown verb: expected one of ", list, ", got ", io::printable(name), did_you_mean(name, names));
}

int carry_out(const std::vector<std::string>& words) {
  if (words.empty()) {
    say(overview());
    return kUsage;
  }
  const std::string& first = words.front();
  if (first == "-h" || first == "--help") {
    print(overview() + (first == "-h" ? "" : kMoreHelp));
    return kDone;
  }
  if (first == "--version") {
    print(cat("taper ", TAPER_VERSION, "\n"));
    return kDone;
  }
  if (first.starts_with('-')) {
    constexpr std::string_view kOptions[] = {"--help", "--version"};
    refuse("unknown option: expected a verb, -h, --help or --version, got ", io::printable(first),
           did_you_mean(first, kOptions));
  }
  const Verb& verb = find_verb(first);
  const std::unique_ptr<Command> command = verb.make();
  Arguments arguments(verb.name, verb.summary, verb.examples);
  command->declare(arguments);
  if (!arguments.parse({words.begin() + 1, words.end()})) return kDone;
  command->command_line = "taper";
  for (const std::string& word : words) command->command_line += " " + word;
  return command->run();
}

/// Names from outside must not steer the terminal.
int fail_with(Exit code, std::string sentence) {
  for (char& c : sentence)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F) c = '?';
  say(cat("taper: ", sentence, sentence.ends_with('\n') ? "" : "\n"));
  return code;
}

}  // namespace

int run_program(const std::vector<std::string>& words) {
  try {
    return carry_out(words);
  } catch (const Failure& failure) {
    return fail_with(failure.code(), failure.what());
  } catch (const config::ConfigError& error) {
    say(error.rendered());
    return kUsage;
  } catch (const Error& error) {
    const bool refused = error.kind() == ErrorKind::config || error.kind() == ErrorKind::shape;
    return fail_with(refused ? kUsage : kFailed, error.what());
  } catch (const std::bad_alloc&) {
    return fail_with(kFailed, "out of memory");
  } catch (const std::exception& error) {
    return fail_with(kFailed, error.what());
  }
}

}  // namespace taper::cli
