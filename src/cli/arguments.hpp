#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace taper::cli {

/// The options of one verb: declared with the variables they fill, then parsed. Everything that is wrong is a `Failure`
/// with `kUsage`, for example `run: unknown option: expected one that taper run --help lists, got --wieghts; did you
/// mean --weights?`.
class Arguments {
 public:
  Arguments(const char* verb, const char* summary, const char* examples);
  ~Arguments();

  /// `names` is what is typed, "--seed" or "-q,--quiet"; `value` how the help calls what follows it.
  struct Option {
    const char* names;
    const char* value;
    const char* help;
    bool required = false;
  };
  void positional(const char* name, const char* help, std::string& target, bool required = true);
  void text(const Option& option, std::string& target);
  void texts(const Option& option, std::vector<std::string>& target);  ///< may be given several times
  void number(const Option& option, std::int64_t min, std::int64_t max, std::optional<std::int64_t>& target);
  /// One of `words`; `target` becomes its position.
  void choice(const Option& option, std::span<const char* const> words, std::size_t& target);
  void flag(const char* names, const char* help, bool& target);

  /// False when help was asked for and printed.
  bool parse(const std::vector<std::string>& words);

 private:
  struct Item {
    CLI::Option* option;
    std::string name;
    bool required, repeatable, is_flag;
    std::function<void(const std::string&)> take;
  };
  void add(const Option& option, bool repeatable, std::function<void(const std::string&)> take);
  void print_help() const;
  void check_values() const;
  void check_unknown() const;
  void take(const Item& item) const;

  std::string verb_;
  const char* examples_;
  std::unique_ptr<CLI::App> app_;
  std::vector<Item> items_;
  bool help_ = false, long_help_ = false;
};

/// A whole number between the bounds. `where` names the option. Refused with `kUsage` otherwise.
std::int64_t parse_integer(std::string_view where, std::string_view text, std::int64_t min, std::int64_t max);

}  // namespace taper::cli
