#include "cli/arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>

#include "base/nearest.hpp"
#include "cli/failure.hpp"
#include "cli/output.hpp"
#include "io/printable.hpp"

namespace taper::cli {

namespace {

/// CLI11's own pages, with the words that must be typed in the first line.
class HelpPage final : public CLI::Formatter {
 public:
  explicit HelpPage(std::string usage) : usage_(std::move(usage)) {
    column_width(32);
    label("Positionals", "Arguments");
  }
  std::string make_usage(const CLI::App*, std::string) const override { return usage_; }

 private:
  std::string usage_;
};

/// "--quiet" of "-q,--quiet".
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

bool looks_like_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

}  // namespace

Arguments::Arguments(const char* verb, const char* summary, const char* examples)
    : verb_(verb), examples_(examples), app_(std::make_unique<CLI::App>(summary, cat("taper ", verb))) {
  app_->set_help_flag();
  app_->allow_extras();
}

Arguments::~Arguments() = default;

void Arguments::add(const Option& option, bool repeatable, std::function<void(const std::string&)> take) {
  CLI::Option* added = app_->add_option(option.names)->description(option.help);
  added->type_name(option.value)->expected(1)->allow_extra_args(false);
  added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  items_.push_back({added, long_name(option.names), option.required, repeatable, false, std::move(take)});
}

void Arguments::positional(const char* name, const char* help, std::string& target, bool required) {
  add({name, "", help, required}, false, [&target](const std::string& word) { target = word; });
}

void Arguments::text(const Option& option, std::string& target) {
  add(option, false, [&target](const std::string& word) { target = word; });
}

void Arguments::texts(const Option& option, std::vector<std::string>& target) {
  add(option, true, [&target](const std::string& word) { target.push_back(word); });
}

void Arguments::number(const Option& option, std::int64_t min, std::int64_t max, std::optional<std::int64_t>& target) {
  const std::string where = cat(verb_, ": ", long_name(option.names));
  add(option, false, [=, &target](const std::string& word) { target = parse_integer(where, word, min, max); });
}

void Arguments::choice(const Option& option, std::span<const char* const> words, std::size_t& target) {
  const std::string where = cat(verb_, ": ", long_name(option.names));
  add(option, false, [=, &target](const std::string& word) {
    std::string expected;
    std::vector<std::string_view> names(words.begin(), words.end());
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (word == words[i]) {
        target = i;
        return;
      }
      expected += cat(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
    }
    refuse(where, ": unknown word: expected ", expected, ", got ", io::printable(word), did_you_mean(word, names));
  });
}

void Arguments::flag(const char* names, const char* help, bool& target) {
  CLI::Option* added = app_->add_flag(names)->description(help);
  added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  items_.push_back({added, long_name(names), false, false, true, [&target](const std::string&) { target = true; }});
}

bool Arguments::parse(const std::vector<std::string>& words) {
  app_->add_flag("-h", help_, "this page");
  app_->add_flag("--help", long_help_, "this page with examples");
  for (const std::string& word : words)
    if (looks_like_option(word) && word.back() == '=' && word.find('=') + 1 == word.size())
      refuse(verb_, ": an option without its value: expected a value after ", io::printable(word), ", got none");
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app_->parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch&) {
    // The parser takes whatever follows as the value, so only the last word can lack one.
    refuse(verb_, ": an option without its value: expected a value after ", io::printable(words.back()), ", got none");
  } catch (const CLI::ParseError& error) {
    refuse(verb_, ": the command line cannot be read: expected what taper ", verb_, " --help says, got ",
           io::printable(error.what()));
  }
  if (help_ || long_help_) {
    print_help();
    return false;
  }
  check_values();
  check_unknown();
  for (const Item& item : items_) take(item);
  return true;
}

void Arguments::print_help() const {
  std::string usage = cat("Usage: taper ", verb_);
  for (const Item& item : items_) {
    const bool is_positional = item.name[0] != '-';
    const std::string word = is_positional ? item.name : cat(item.name, ' ', item.option->get_type_name());
    if (item.required)
      usage += " " + word;
    else if (is_positional)
      usage += cat(" [", word, ']');
  }
  app_->formatter(std::make_shared<HelpPage>(usage + " [OPTIONS]\n"));
  print(app_->help());
  if (long_help_) print(cat("Examples:\n", examples_));
}

void Arguments::check_values() const {
  for (const Item& item : items_) {
    if (item.is_flag) continue;
    for (const std::string& word : item.option->results())
      if (word.empty() || (item.name[0] == '-' && looks_like_option(word)))
        refuse(verb_, ": ", item.name, " has no value: expected one after it, got ",
               word.empty() ? "an empty word" : io::printable(word));
  }
}

void Arguments::check_unknown() const {
  std::vector<std::string> unknown = app_->remaining();
  std::erase(unknown, "--");  // behind it stand names that begin with a dash
  if (unknown.empty()) return;
  // A misspelt option leaves its value over, too: the option is what is wrong.
  std::string word = unknown.front();
  for (const std::string& other : unknown)
    if (other.size() > 1 && other[0] == '-') {
      word = other;
      break;
    }
  if (word[0] != '-')
    refuse(verb_, ": one argument too many: expected what taper ", verb_, " -h says, got ", io::printable(word));
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string_view> names{"--help"};
  for (const Item& item : items_)
    if (item.name[0] == '-') names.push_back(item.name);
  refuse(verb_, ": unknown option: expected one that taper ", verb_, " -h lists, got ", io::printable(name),
         did_you_mean(name, names));
}

void Arguments::take(const Item& item) const {
  const auto& results = item.option->results();
  if (results.empty()) {
    if (item.required)
      refuse(verb_, ": ", item.name, " is missing: expected it on the command line, got none; taper ", verb_,
             " -h shows how");
    return;
  }
  if (item.is_flag) return item.take("");
  if (results.size() > 1 && !item.repeatable)
    refuse(verb_, ": ", item.name, " is given more than once: expected one value, got ", results.size());
  for (const std::string& word : results) item.take(word);
}

std::int64_t parse_integer(std::string_view where, std::string_view text, std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= min && value <= max) return value;
  const std::string expected =
      max == INT64_MAX ? cat("an integer >= ", min) : cat("an integer from ", min, " to ", max);
  refuse(where, ": not a number it takes: expected ", expected, ", got ", io::printable(text));
}

}  // namespace taper::cli
