#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "support/matches.hpp"
#include "support/temp_folder.hpp"

// Rules of the tree that no compiler checks.
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = TAPER_SOURCE_DIR;

std::vector<fs::path> sources_below(const std::string& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> includes_of(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& match : taper::test::matches(text, R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])"))
    out.push_back(match.at(0));
  return out;
}

bool starts_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

/// The layer a file or an included header belongs to; "" for the standard library and foreign headers.
std::string layer_of(const std::string& path) {
  static const std::vector<std::pair<std::string, std::string>> kLayers = {
      {"src/base/", "base"},
      {"base/", "base"},
      {"taper/shape.hpp", "base"},
      {"taper/dtype.hpp", "base"},
      {"taper/error.hpp", "base"},
      {"taper/fields.hpp", "base"},
      {"taper/shared.hpp", "base"},
      {"src/kernels/", "kernels"},
      {"kernels/", "kernels"},
      {"src/core/", "core"},
      {"core/", "core"},
      {"taper/tensor.hpp", "core"},
      {"taper/autograd.hpp", "core"},
      {"taper/creation.hpp", "core"},
      {"taper/plan.hpp", "core"},
      {"src/ops/", "ops"},
      {"ops/", "ops"},
      {"taper/ops.hpp", "ops"},
      {"src/optim/", "optim"},
      {"optim/", "optim"},
      {"taper/optim.hpp", "optim"},
      {"taper/lr_scheduler.hpp", "optim"},
      {"src/io/", "io"},
      {"io/", "io"},
      {"taper/io.hpp", "io"},
      {"src/data/", "data"},
      {"data/", "data"},
      {"taper/data.hpp", "data"},
      {"taper/nn/", "nn"},
      {"modules/", "nn"},
      {"src/config/", "config"},
      {"config/", "config"},
      {"taper/config.hpp", "config"},
      {"src/train/", "train"},
      {"train/", "train"},
      {"src/cli/", "cli"},
      {"taper/taper.hpp", "all"},
  };
  for (const auto& [prefix, layer] : kLayers)
    if (starts_with(path, prefix)) return layer;
  return "";
}

// Whom each layer may include beside itself.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {}},
    {"kernels", {"base"}},
    {"core", {"base", "kernels"}},
    {"ops", {"base", "kernels", "core"}},
    {"optim", {"base", "kernels", "core", "ops"}},
    {"io", {"base", "kernels", "core", "ops"}},
    {"data", {"base", "kernels", "core", "ops", "io"}},
    {"nn", {"base", "kernels", "core", "ops", "optim", "io", "data"}},
    {"config", {"base", "core", "ops", "optim", "io", "data", "nn", "train"}},
    {"train", {"base", "core", "ops", "optim", "io", "data", "nn", "config"}},
    {"cli", {"base", "core", "ops", "optim", "io", "data", "nn", "config", "train", "all"}},
};

/// "file includes header" for everything that breaks a rule; "" when `layer` may include `header`.
bool allowed(const std::string& layer, const std::string& header) {
  const std::string other = layer_of(header);
  return other.empty() || other == layer || kMayInclude.at(layer).count(other) > 0;
}

}  // namespace

TEST_CASE("includes run downwards only") {
  std::vector<std::string> wrong;
  for (const char* folder : {"include/taper", "src", "modules"})
    for (const fs::path& file : sources_below(folder)) {
      std::string name = fs::relative(file, kRoot).string();
      if (starts_with(name, "include/")) name = name.substr(8);
      const std::string layer = layer_of(name);
      INFO(name);
      REQUIRE_FALSE(layer.empty());
      if (layer == "all") continue;
      for (const std::string& header : includes_of(slurp(file)))
        if (!allowed(layer, header)) wrong.push_back(name + " includes " + header);
    }
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("the include rule would notice a kernel that knows tensors") {
  CHECK_FALSE(allowed("kernels", "taper/tensor.hpp"));
  CHECK_FALSE(allowed("optim", "taper/nn/module.hpp"));
  CHECK(allowed("nn", "kernels/linear.hpp"));
}

TEST_CASE("public headers include the standard library and each other, and nothing heavy") {
  static const std::set<std::string> kHeavy = {"iostream", "functional",    "random", "filesystem", "regex", "fstream",
                                               "sstream",  "unordered_map", "map",    "thread",     "future"};
  std::vector<std::string> wrong;
  for (const fs::path& file : sources_below("include"))
    for (const std::string& header : includes_of(slurp(file))) {
      const bool own = starts_with(header, "taper/");
      const bool standard = header.find('.') == std::string::npos && header.find('/') == std::string::npos;
      if ((!own && !standard) || kHeavy.count(header))
        wrong.push_back(file.filename().string() + " includes " + header);
    }
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("a shared library exports what public headers declare") {
  // Templates that are instantiated in a source file: the compiler does not take the visibility around them.
  const std::string unmarked = "template <([^>]*)>\n[^[{]*\\(([^{;]|\n)*\\);";
  for (const fs::path& path : sources_below("include")) {
    CAPTURE(path);
    const std::string text = slurp(path);
    if (text.find("namespace taper") == std::string::npos) continue;
    const std::size_t from = text.find("#pragma GCC visibility push(default)\n");
    CHECK(from < text.find("namespace taper"));
    CHECK(text.find("#include", from) == std::string::npos);
    CHECK(text.ends_with("\n#pragma GCC visibility pop\n"));
    for (const auto& match : taper::test::matches(text, unmarked)) CHECK(match.at(0).starts_with("class Options"));
  }
}

TEST_CASE("third-party libraries stay in their layer") {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> kOnlyIn = {
      {"Eigen/", {"tests"}},
      {"omp.h", {"src/kernels", "src/base/threads.cpp"}},
      {"nlohmann/", {"src/config"}},
      {"zlib.h", {"src/io"}},
      {"CLI/", {"src/cli"}}};
  std::vector<std::string> wrong;
  for (const char* folder : {"include", "src", "modules"})
    for (const fs::path& file : sources_below(folder)) {
      const std::string name = fs::relative(file, kRoot).string();
      for (const std::string& header : includes_of(slurp(file)))
        for (const auto& [library, homes] : kOnlyIn)
          if (starts_with(header, library) &&
              std::none_of(homes.begin(), homes.end(), [&](const auto& home) { return starts_with(name, home); }))
            wrong.push_back(name + " includes " + header);
    }
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("the umbrella header keeps its budget of preprocessed lines") {
  const std::string command = std::string(TAPER_CXX) + " -std=c++20 -E -P -x c++ -I" + (kRoot / "include").string() +
                              " " + (kRoot / "include/taper/taper.hpp").string() + " 2>&1 | wc -l";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  long lines = 0;
  const int read_fields = std::fscanf(pipe, "%ld", &lines);
  pclose(pipe);
  REQUIRE(read_fields == 1);
  CHECK(lines > 1000);  // the compiler ran
  CHECK(lines <= 45000);
}

TEST_CASE("every layer's source has a test of its own name") {
  std::vector<std::string> missing;
  for (const fs::path& file : sources_below("modules")) {
    if (file.extension() != ".cpp" || file.stem() == "registry" || file.stem() == "spatial" || file.stem() == "sizes" ||
        file.stem() == "conv_common")
      continue;
    if (!fs::exists(kRoot / "tests/modules" / (file.stem().string() + "_test.cpp")))
      missing.push_back(file.filename().string());
  }
  CHECK(missing == std::vector<std::string>{});
}

TEST_CASE("no source file is longer than 500 lines") {
  std::vector<std::string> long_files;
  for (const char* folder : {"include", "src", "modules", "examples", "bench"})
    for (const fs::path& file : sources_below(folder)) {
      const std::string text = slurp(file);
      if (std::count(text.begin(), text.end(), '\n') > 500) long_files.push_back(fs::relative(file, kRoot).string());
    }
  CHECK(long_files == std::vector<std::string>{});
}

TEST_CASE("every example is in the list of examples") {
  const std::string list = slurp(kRoot / "examples/README.md");
  std::vector<std::string> missing;
  for (const fs::path& file : sources_below("examples"))
    if (list.find("](" + file.filename().string() + ")") == std::string::npos) missing.push_back(file.filename());
  CHECK(missing == std::vector<std::string>{});
}

TEST_CASE("the training program in the README is the one that is compiled and run") {
  const std::string readme = slurp(kRoot / "README.md");
  const std::size_t begin = readme.find("```cpp\n") + 7, end = readme.find("```", begin);
  REQUIRE(end != std::string::npos);
  CHECK(readme.substr(begin, end - begin) == slurp(kRoot / "examples/00_readme.cpp"));
}

TEST_CASE("the model in the README is the config that is trained") {
  const std::string readme = slurp(kRoot / "README.md");
  const std::size_t begin = readme.find("```json\n") + 8, end = readme.find("```", begin);
  CHECK(readme.substr(begin, end - begin) == slurp(kRoot / "examples/configs/forum.json"));
}
