#include "config/diagnostics.hpp"

#include "support/catch.hpp"

using namespace taper;
using namespace taper::config;

namespace {

/// The span of the first `part` in `text`.
Span span_of(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return {at, at + part.size()};
}

/// What is shown below the headline for `part` of `text`.
std::string excerpt(const std::string& text, const std::string& part) {
  return Source("m.json", text).excerpt(span_of(text, part));
}

}  // namespace

TEST_CASE("diagnostics are shown by position with line and caret, those without one last") {
  const std::string text = "{\n  \"lr\": true,\n  {\"type\": \"AvgPool1d\", \"kernal_size\": 25}\n}\n";
  Diagnostics diagnostics(Source("forum.json", text));
  diagnostics.add(
      {.pointer = "/train/epochs", .message = "expected an integer, got 2.9", .origin = "--set train.epochs"});
  diagnostics.add({.pointer = "/model/layers/2/kernal_size",
                   .message = "unknown key; did you mean kernel_size?",
                   .layer = "avg_pool",
                   .span = span_of(text, "\"kernal_size\"")});
  diagnostics.add({.pointer = "/lr", .message = "expected a number, got true", .span = span_of(text, "true")});
  diagnostics.add({.pointer = "", .message = "expected a model, got none"});
  CHECK(diagnostics.render() ==
        "forum.json:2:9: error: /lr: expected a number, got true\n"
        "    2 |   \"lr\": true,\n"
        "      |         ^~~~\n"
        "forum.json:3:25: error: /model/layers/2/kernal_size (layer avg_pool): unknown key; did you mean kernel_size?\n"
        "    3 |   {\"type\": \"AvgPool1d\", \"kernal_size\": 25}\n"
        "      |                         ^~~~~~~~~~~~~\n"
        "--set train.epochs: error: /train/epochs: expected an integer, got 2.9\n"
        "forum.json: error: expected a model, got none\n");
  CHECK(diagnostics.sentences() ==
        "/lr (line 2): expected a number, got true\n"
        "/model/layers/2/kernal_size (layer avg_pool, line 3): unknown key; did you mean kernel_size?\n"
        "/train/epochs (--set train.epochs): expected an integer, got 2.9\n"
        "forum.json: expected a model, got none");
  CHECK(diagnostics.summary() == "4 errors in forum.json");
}

TEST_CASE("a refused config is an error of kind config with both forms") {
  Diagnostics diagnostics(Source("a.json", "[3]"));
  CHECK(diagnostics.summary() == "no errors in a.json");
  CHECK_NOTHROW(diagnostics.throw_if_any());
  diagnostics.add({.pointer = "/0", .message = "expected a string, got 3", .span = Span{1, 2}});
  try {
    diagnostics.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()) == "/0 (line 1): expected a string, got 3");
    const auto* refused = dynamic_cast<const ConfigError*>(&error);
    REQUIRE(refused);
    CHECK(refused->rendered() ==
          "a.json:1:2: error: /0: expected a string, got 3\n    1 | [3]\n      |  ^\n1 error in a.json\n");
  }
}

TEST_CASE("values from a program have a pointer only") {
  Diagnostics diagnostics;
  diagnostics.add({.pointer = "/lr", .message = "expected a number, got true"});
  diagnostics.add({.pointer = "", .message = "expected an object, got 3"});
  CHECK(diagnostics.render() == "error: /lr: expected a number, got true\nerror: expected an object, got 3\n");
  CHECK(diagnostics.sentences() == "/lr: expected a number, got true\nconfig: expected an object, got 3");
  CHECK(diagnostics.summary() == "2 errors");
}

TEST_CASE("beyond a hundred diagnostics are only counted") {
  Diagnostics diagnostics(Source("a.json", ""));
  for (int i = 0; i < 103; ++i) diagnostics.add({.pointer = "/x", .message = "wrong"});
  CHECK(diagnostics.is_full());
  CHECK(diagnostics.render().ends_with("a.json: error: /x: wrong\n... and 3 more\n"));
  CHECK(diagnostics.summary() == "103 errors in a.json");
}

TEST_CASE("positions count lines and code points from one") {
  const Source source("a", "\xEF\xBB\xBF{\r\n  \"é€😀\": 1}\n");
  CHECK(to_string(source.position(0)) == "line 1, column 1");
  CHECK(to_string(source.position(3)) == "line 1, column 1");
  CHECK(to_string(source.position(source.text().find('1'))) == "line 2, column 10");
  CHECK(to_string(source.position(source.text().size())) == "line 3, column 1");
  CHECK(to_string(source.position(1000)) == "line 3, column 1");
}

TEST_CASE("an excerpt keeps its caret under tabs, wide bytes and line ends") {
  CHECK(excerpt("{\r\n\t\t\"é\": XY,\r\n}", "XY") == "    2 |   \"é\": XY,\n      |        ^~\n");
  CHECK(excerpt("[\n1\n]", "[\n1\n]") == "    1 | [\n      | ^\n");
  CHECK(excerpt("[1,\n\n", "\n\n") == "    1 | [1,\n      |    ^\n");
  CHECK(Source("a", "").excerpt({0, 0}) == "    1 |\n      | ^\n");
  CHECK(Source("a", "[1\n").excerpt({3, 3}) == "    2 |\n      | ^\n");
  std::string lines;
  for (int i = 0; i < 123456; ++i) lines += '\n';
  CHECK(excerpt(lines + "ab", "b") == "123457 | ab\n       |  ^\n");
}

TEST_CASE("an excerpt cuts long lines around the caret") {
  const std::string a(60, 'a'), b(200, 'b');
  CHECK(excerpt(a + "XYZ" + b, "XYZ") == "    1 | ..." + std::string(40, 'a') + "XYZ" + std::string(57, 'b') + "...\n" +
                                             "      |    " + std::string(40, ' ') + "^~~\n");
  CHECK(excerpt("X" + b, "X" + b) ==
        "    1 | X" + std::string(99, 'b') + "...\n      | ^" + std::string(99, '~') + "\n");
  CHECK(excerpt(b + "X", "X") ==
        "    1 | ..." + std::string(40, 'b') + "X\n      |    " + std::string(40, ' ') + "^\n");
  CHECK(excerpt(std::string(99, 'b') + "X", "X") ==
        "    1 | " + std::string(99, 'b') + "X\n      | " + std::string(99, ' ') + "^\n");
}

TEST_CASE("nothing of a text reaches the terminal that it would obey") {
  CHECK(excerpt("[\x1B[31m, \x07\xFF\u202E X", "X") ==
        "    1 | [\uFFFD[31m, \uFFFD\uFFFD\uFFFD X\n      | " + std::string(12, ' ') + "^\n");
  CHECK(shown("a\x1B[0m\n\u202E\xFFz") == "a\\u001b[0m\\u000a\\u202e\uFFFDz");
  CHECK(shown("ééééé", 3) == "ééé...");
  CHECK(shown("ééé", 3) == "ééé");
  Diagnostics diagnostics(Source("m.json", "x"));
  diagnostics.add({.pointer = "/" + std::string(300, 'k'), .message = "m", .layer = "\x1B", .origin = "\x07"});
  CHECK(diagnostics.render() == "\\u0007: error: /" + std::string(199, 'k') + "... (layer \\u001b): m\n");
}
