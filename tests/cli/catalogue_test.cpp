#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "taper/lr_scheduler.hpp"
#include "taper/nn/loss.hpp"
#include "taper/nn/registry.hpp"
#include "taper/optim.hpp"

using namespace taper;
using nlohmann::json;

TEST_CASE("layers shows one layer with every option") {
  const TempFolder folder;
  const Outcome outcome = run_taper(folder.path(), {"layers", "AvgPool1d"});
  CHECK(outcome.exit == 0);
  CHECK(outcome.err == "");
  CHECK(outcome.out.starts_with("AvgPool1d\n\nAverages windows over the last dimension: [N, C, L] -> [N, C, L'].\n"));
  for (const char* key : {"kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"})
    CHECK(outcome.out.find(std::string("\n") + key) != std::string::npos);
  CHECK(outcome.out.find("required") != std::string::npos);
}

TEST_CASE("layers lists all that a config can name, also as JSON") {
  const TempFolder folder;
  const Outcome text = run_taper(folder.path(), {"layers"}), data = run_taper(folder.path(), {"layers", "--json"});
  CHECK(text.exit == 0);
  const json entries = taper::test::parsed(data.out);
  std::vector<std::string> listed;
  for (const json& entry : entries) {
    listed.push_back(entry["name"]);
    CHECK(text.out.find("\n  " + listed.back() + " ") != std::string::npos);
    CHECK(entry["example"]["type"] == entry["name"]);
    for (const json& option : entry["options"]) CHECK(option.contains("default") != option["required"].get<bool>());
  }
  std::vector<std::string> expected;
  for (const auto& type : nn::layer_types()) expected.push_back(type.name);
  expected.push_back("Sequential");
  expected.push_back("Graph");
  for (const auto& type : nn::loss_types()) expected.push_back(type.name);
  for (const auto& type : optim::optimizer_types()) expected.push_back(type.name);
  for (const auto& type : optim::scheduler_types()) expected.push_back(type.name);
  CHECK(listed == expected);
}

TEST_CASE("env says what a bug report needs") {
  const TempFolder folder;
  const Outcome text = run_taper(folder.path(), {"env"}), data = run_taper(folder.path(), {"env", "--json"});
  CHECK(text.exit == 0);
  const json facts = taper::test::parsed(data.out);
  for (const char* key : {"version", "compiler", "build type", "processor", "threads", "nlohmann_json", "zlib"}) {
    CHECK(facts[key].get<std::string>() != "");
    CHECK(text.out.find(key) != std::string::npos);
  }
}

TEST_CASE("help goes to standard output, -h within one screen, --help with examples") {
  const TempFolder folder;
  for (const char* verb : {"", "train", "eval", "predict", "run", "summary", "layers", "env"}) {
    std::vector<std::string> words;
    if (*verb) words.push_back(verb);
    auto brief = words, all = words;
    brief.push_back("-h");
    all.push_back("--help");
    const Outcome short_page = run_taper(folder.path(), brief), long_page = run_taper(folder.path(), all);
    CHECK(short_page.exit == 0);
    CHECK(long_page.exit == 0);
    CHECK(short_page.err == "");
    CHECK(std::count(short_page.out.begin(), short_page.out.end(), '\n') <= 24);
    CHECK(short_page.out.find("Examples:") == std::string::npos);
    CHECK(long_page.out.find("Examples:\n  taper ") != std::string::npos);
  }
  const Outcome bare = run_taper(folder.path(), {});
  CHECK(bare.exit == 2);
  CHECK(bare.out == "");
  CHECK(bare.err.find("Usage: taper VERB [OPTIONS]") != std::string::npos);
  CHECK(run_taper(folder.path(), {"--version"}).out.starts_with("taper "));
}
