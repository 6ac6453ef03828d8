#include "base/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/fail.hpp"

namespace taper {

namespace {

constexpr std::size_t kLongest = 64;     // no name of ours is longer, and a hostile key may be
constexpr std::size_t kLeastPrefix = 3;  // shorter beginnings fit too many names
constexpr std::size_t kFar = std::string::npos;

bool is_separator(char c) { return c == '_' || c == '-' || c == '.' || c == ' '; }

/// The words of a name in lower case: {"kernel", "size"}.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (!is_separator(c)) {
      words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

struct Name {
  std::vector<std::string> words;
  std::vector<std::string> sorted;
  std::string joined;

  explicit Name(std::string_view name) : words(words_of(name)), sorted(words) {
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& word : words) joined += word;
  }
};

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

bool begins(const std::string& whole, const std::string& part) {
  return part.size() >= kLeastPrefix && whole.starts_with(part);
}

/// How far `name` is from what was given: 0 is the same but for case and separators.
std::size_t distance(const Name& given, const Name& name) {
  if (given.joined == name.joined) return 0;
  if (given.sorted == name.sorted) return 1;
  const std::size_t shorter = std::min(given.joined.size(), name.joined.size());
  const std::size_t longer = std::max(given.joined.size(), name.joined.size());
  const std::size_t most = std::min(std::max<std::size_t>(1, longer / 3), shorter - 1);
  const std::size_t edits = longer - shorter > most ? kFar : edit_distance(given.joined, name.joined);
  if (edits <= most) return edits;
  if (begins(name.joined, given.joined) || begins(given.joined, name.joined)) return kLongest;
  const bool is_word = given.joined.size() >= kLeastPrefix &&
                       std::find(name.words.begin(), name.words.end(), given.joined) != name.words.end();
  return is_word ? kLongest + 1 : kFar;
}

}  // namespace

std::string nearest(std::string_view given, std::span<const std::string_view> names) {
  if (given.size() > kLongest) return "";
  const Name wanted(given);
  if (wanted.joined.empty()) return "";
  std::string_view best;
  std::size_t least = kFar;
  for (const std::string_view candidate : names) {
    const Name name(candidate);
    if (name.joined.empty()) continue;
    const std::size_t far = distance(wanted, name);
    if (far < least) {
      least = far;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> names) {
  const std::string name = nearest(given, names);
  return name.empty() ? "" : cat("; did you mean ", name, "?");
}

}  // namespace taper
