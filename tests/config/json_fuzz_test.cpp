#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/utf8.hpp"
#include "config/json_text.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"

using namespace taper;
using namespace taper::config;

namespace {

constexpr std::string_view kUnspoilt = R"({
  "model": {
    "input": {"shape": [12, 25]},
    "layers": [
      {"type": "Conv1d", "name": "conv\u00e9\ud83d\ude00", "out_channels": 32, "padding": -1},
      {"type": "AvgPool1d", "kernel_size": 25, "ceil_mode": false, "note": "a\\b\n\"ü€😀"},
      {"type": "Linear", "out_features": 9, "bias": true, "x": null}
    ]
  },
  "optimizer": {"type": "Adam", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1.5E-08}
})";

constexpr std::array<std::string_view, 41> kPieces = {"{",
                                                      "}",
                                                      "[",
                                                      "]",
                                                      ",",
                                                      ":",
                                                      "\"",
                                                      "\\",
                                                      "'",
                                                      "/",
                                                      "//x\n",
                                                      "/*",
                                                      "#",
                                                      "\\u",
                                                      "1",
                                                      "0",
                                                      "-",
                                                      "+",
                                                      ".",
                                                      "e9999",
                                                      "e-9999",
                                                      "true",
                                                      "null",
                                                      "NaN",
                                                      "\n",
                                                      "\t",
                                                      " ",
                                                      "\\ud800",
                                                      "\x80",
                                                      "\xC3",
                                                      "\xED\xA0\x80",
                                                      "\xF4\x90\x80\x80",
                                                      "\\udc00",
                                                      "\x1F",
                                                      "\"type\": 1,",
                                                      "\"a\":1, \"a\":2,",
                                                      "\\u0000",
                                                      "[[[[[[[[[[[[[[[[[[",
                                                      "]]]]]]]]]]]]]]]]]]",
                                                      "\xEF\xBB\xBF",
                                                      "\\q"};

/// What we refuse on purpose and a JSON reader may take.
bool is_own_refusal(const std::string& message) {
  for (const std::string_view own :
       {"duplicate key", "expected a key of printable", "nested too deep", "number out of range: expected 0 or"}) {
    if (message.find(own) != std::string::npos) return true;
  }
  return false;
}

class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : seed_(seed) {}

  std::size_t below(std::size_t limit) { return philox(seed_, 0, count_++)[0] % limit; }

  std::string next() {
    std::string text(kUnspoilt);
    for (std::size_t i = 1 + below(3); i > 0; --i) mutate(text);
    return text;
  }

 private:
  void mutate(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t size = std::min<std::size_t>(1 + below(5), text.size() - at);
    switch (below(5)) {
      case 0:
        text.erase(at, size);
        break;
      case 1:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        text.replace(at, size, kPieces[below(kPieces.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), 1 + below(40)));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(1 + below(255));
    }
  }

  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace

TEST_CASE("mutated configs are accepted exactly when they are JSON, less what we refuse on purpose") {
  Mutations mutations(20240611);
  int accepted = 0, refused = 0, ours = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = mutations.next();
    Diagnostics diagnostics(Source("m.json", text));
    const auto document = parse_json(diagnostics);
    const std::string sentences = diagnostics.sentences();
    REQUIRE(find_invalid_utf8(diagnostics.render()) == std::string::npos);
    const bool is_json = nlohmann::json::accept(text);
    INFO(text << "\n" << diagnostics.render());
    if (!document) REQUIRE_FALSE(diagnostics.empty());
    // The scan itself must have seen it, not the reader that builds the tree.
    REQUIRE(sentences.find("got another text") == std::string::npos);
    if (document) REQUIRE(is_json);
    if (is_json && !diagnostics.empty()) REQUIRE(is_own_refusal(sentences));
    if (!is_json) REQUIRE_FALSE(diagnostics.empty());
    ++(diagnostics.empty() ? accepted : is_json ? ours : refused);
  }
  CHECK(accepted > 300);
  CHECK(refused > 500);
  CHECK(ours > 5);
}

TEST_CASE("every beginning of a config is refused, and every value of it is found where it stands") {
  for (std::size_t size = 0; size < kUnspoilt.size(); ++size) {
    Diagnostics diagnostics(Source("m.json", std::string(kUnspoilt.substr(0, size))));
    REQUIRE_FALSE(parse_json(diagnostics));
    REQUIRE_FALSE(diagnostics.render().empty());
  }
  Diagnostics diagnostics(Source("m.json", std::string(kUnspoilt)));
  const auto document = parse_json(diagnostics);
  REQUIRE(document);
  const Json flat = document->root().flatten();
  for (const auto& [pointer, value] : flat.items())
    REQUIRE(test::parsed<Json>(document->literal(pointer, nullptr)) == value);
  CHECK(flat.size() == 19);
}
