#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/matches.hpp"
#include "support/temp_folder.hpp"

// The evidence is all there: a test for every known fault, and enough stored results.
namespace fs = std::filesystem;

namespace {

const fs::path kTests = fs::path(TAPER_SOURCE_DIR) / "tests";

/// What stands in the first group of `pattern`, as numbers.
std::set<int> numbers_in(const std::string& text, const std::string& pattern) {
  std::set<int> found;
  for (const auto& match : taper::test::matches(text, pattern)) found.insert(std::stoi(match.at(0)));
  return found;
}

}  // namespace

TEST_CASE("every fault of the list has a test, and every test's fault is in the list") {
  const std::set<int> listed = numbers_in(slurp(kTests / "faults/README.md"), "^\\| ([0-9]+) \\| ");
  CHECK(listed.size() >= 82);
  std::set<int> tested;
  for (const auto& entry : fs::recursive_directory_iterator(kTests))
    if (entry.path().extension() == ".cpp") tested.merge(numbers_in(slurp(entry.path()), "\\[fault-([0-9]+)\\]"));
  CHECK(tested == listed);
}

TEST_CASE("at least 3000 results of PyTorch are stored") {
  std::size_t cases = 0, bytes = 0;
  for (const auto& entry : fs::directory_iterator(kTests / "golden")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".json") continue;
    bytes += entry.file_size();
    CHECK(entry.file_size() < 1'000'000);
    if (name != "printing.json") cases += taper::test::read_golden(name).at("cases").size();
  }
  CHECK(cases >= 3000);
  CHECK(bytes < 9'000'000);
}
