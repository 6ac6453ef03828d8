#include "config/json_values.hpp"

#include <limits>

#include "base/fail.hpp"
#include "support/catch.hpp"

using namespace taper;
using namespace taper::config;

namespace {

/// Reads the JSON text `literal` by `read` and answers the messages.
template <class Read>
std::string said(const std::string& literal, Read read) {
  Diagnostics diagnostics(Source("m.json", "{\"v\": " + literal + "}"));
  const auto document = parse_json(diagnostics);
  REQUIRE(document);
  Reader reader(*document, diagnostics);
  const auto value = read(reader, document->root()["v"], "/v");
  CHECK(value.has_value() == diagnostics.empty());
  return diagnostics.sentences();
}

const auto kInteger = [](Reader& reader, const Json& value, const char* at) { return reader.integer(value, at); };
const auto kNumber = [](Reader& reader, const Json& value, const char* at) { return reader.number(value, at); };
const auto kBoolean = [](Reader& reader, const Json& value, const char* at) { return reader.boolean(value, at); };
const auto kString = [](Reader& reader, const Json& value, const char* at) { return reader.string(value, at); };
const auto kIntegers = [](Reader& reader, const Json& value, const char* at) { return reader.integers(value, at); };
const auto kStrings = [](Reader& reader, const Json& value, const char* at) { return reader.strings(value, at); };

}  // namespace

TEST_CASE("an integer is a number without point and exponent within 64 bits", "[fault-115]") {
  for (const std::string good : {"0", "-1", "-0", "4294967298", "9223372036854775807", "-9223372036854775808"}) {
    CHECK(said(good, kInteger) == "");
  }
  CHECK(said("2.9", kInteger) == "/v (line 1): expected an integer, got 2.9");
  CHECK(said("2.0", kInteger) == "/v (line 1): expected an integer, got 2.0; write 2");
  CHECK(said("1e3", kInteger) == "/v (line 1): expected an integer, got 1e3; write 1000");
  CHECK(said("1e300", kInteger) == "/v (line 1): expected an integer, got 1e300");
  CHECK(said("true", kInteger) == "/v (line 1): expected an integer, got true");
  CHECK(said("null", kInteger) == "/v (line 1): expected an integer, got null");
  CHECK(said("\"3\"", kInteger) == "/v (line 1): expected an integer, got a string \"3\"; write 3 without quotes");
  CHECK(said("\"3.5\"", kInteger) == "/v (line 1): expected an integer, got a string \"3.5\"");
  CHECK(said("\"three\"", kInteger) == "/v (line 1): expected an integer, got a string \"three\"");
  CHECK(said("[3]", kInteger) == "/v (line 1): expected an integer, got an array");
  CHECK(said("{}", kInteger) == "/v (line 1): expected an integer, got an object");
  const std::string range = "/v (line 1): expected an integer from -9223372036854775808 to 9223372036854775807, got ";
  for (const std::string big :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809"}) {
    CHECK(said(big, kInteger) == range + big);
  }
}

TEST_CASE("a number is any JSON number and nothing that looks like one") {
  CHECK(said("3", kNumber) == "");
  CHECK(said("-2.5e-3", kNumber) == "");
  CHECK(said("18446744073709551616", kNumber) == "");
  CHECK(said("false", kNumber) == "/v (line 1): expected a number, got false");
  CHECK(said("\"1e-3\"", kNumber) ==
        "/v (line 1): expected a number, got a string \"1e-3\"; write 1e-3 without quotes");
  CHECK(said("\"nan\"", kNumber) == "/v (line 1): expected a number, got a string \"nan\"");
  CHECK(said("\"\"", kNumber) == "/v (line 1): expected a number, got a string \"\"");
}

TEST_CASE("a boolean is true or false") {
  CHECK(said("true", kBoolean) == "");
  CHECK(said("1", kBoolean) == "/v (line 1): expected true or false, got 1; write true");
  CHECK(said("0", kBoolean) == "/v (line 1): expected true or false, got 0; write false");
  CHECK(said("2", kBoolean) == "/v (line 1): expected true or false, got 2");
  CHECK(said("\"true\"", kBoolean) ==
        "/v (line 1): expected true or false, got a string \"true\"; write true without quotes");
  CHECK(said("\"yes\"", kBoolean) == "/v (line 1): expected true or false, got a string \"yes\"");
}

TEST_CASE("a string is a string") {
  CHECK(said("\"é\"", kString) == "");
  CHECK(said("3.10", kString) == "/v (line 1): expected a string, got 3.10; write \"3.10\"");
  CHECK(said("null", kString) == "/v (line 1): expected a string, got null");
  CHECK(said("\"" + std::string(100, 'x') + "\"", kInteger) ==
        "/v (line 1): expected an integer, got a string \"" + std::string(39, 'x') + "...");
}

TEST_CASE("every wrong element of an array is reported") {
  CHECK(said("[3, 5]", kIntegers) == "");
  CHECK(said("[]", kIntegers) == "");
  CHECK(said("[3, 2.5, \"7\"]", kIntegers) ==
        "/v/1 (line 1): expected an integer, got 2.5\n"
        "/v/2 (line 1): expected an integer, got a string \"7\"; write 7 without quotes");
  CHECK(said("3", kIntegers) == "/v (line 1): expected an array of integers, got 3");
  CHECK(said("[\"a\", 1]", kStrings) == "/v/1 (line 1): expected a string, got 1; write \"1\"");
}

TEST_CASE("what is read is what was written") {
  Diagnostics diagnostics(Source("m.json", R"([4294967298, [0.1, 3], [true, false], ["a", ""], -7])"));
  const auto document = parse_json(diagnostics);
  REQUIRE(document);
  Reader reader(*document, diagnostics);
  const Json& root = document->root();
  CHECK(reader.integer(root[0], "/0") == 4294967298);
  CHECK(reader.number(root[0], "/0") == 4294967298.0);
  CHECK(reader.numbers(root[1], "/1") == std::vector<double>{0.1, 3.0});
  CHECK(reader.booleans(root[2], "/2") == std::vector<bool>{true, false});
  CHECK(reader.strings(root[3], "/3") == std::vector<std::string>{"a", ""});
  CHECK(reader.integer(root[4], "/4") == -7);
  CHECK(diagnostics.empty());
}

TEST_CASE("unknown and missing keys and unknown names are reported with what is known") {
  Diagnostics diagnostics(Source("m.json", "{\n \"kernal_size\": 3,\n \"color\": 1,\n \"mode\": \"men\"\n}"));
  const auto document = parse_json(diagnostics);
  REQUIRE(document);
  Reader reader(*document, diagnostics);
  reader.set_layer("pool");
  const std::vector<std::string_view> keys = {"kernel_size", "stride", "mode"};
  const std::vector<std::string_view> modes = {"mean", "sum", "none"};
  const Json& root = document->root();
  CHECK(reader.is_object(root, ""));
  CHECK_FALSE(reader.is_object(root["color"], "/color"));
  CHECK_FALSE(reader.is_array(root["color"], "/color", "layers"));
  reader.refuse_unknown_keys(root, "", keys);
  CHECK_FALSE(reader.one_of(root["mode"], "/mode", modes));
  CHECK(reader.one_of("sum", "/mode", modes) == "sum");
  CHECK(reader.required(root, "", "stride") == nullptr);
  CHECK(reader.required(root, "", "mode") == &root["mode"]);
  CHECK(diagnostics.sentences() ==
        "m.json (layer pool, line 1): missing key: expected stride, got none\n"
        "/kernal_size (layer pool, line 2): unknown key; did you mean kernel_size?\n"
        "/color (layer pool, line 3): unknown key: expected kernel_size, stride or mode\n"
        "/color (layer pool, line 3): expected an object, got 1\n"
        "/color (layer pool, line 3): expected an array of layers, got 1\n"
        "/mode (layer pool, line 4): expected mean, sum or none, got men; did you mean mean?");
}

TEST_CASE("values from the command line and from a program name their origin") {
  Diagnostics diagnostics(Source("m.json", "{\"a\": 1}"));
  auto document = parse_json(diagnostics);
  REQUIRE(document);
  REQUIRE(document->set("/a", 2.0, "--set a"));
  REQUIRE(document->set("/b", std::numeric_limits<double>::quiet_NaN(), "options"));
  Reader reader(*document, diagnostics);
  CHECK_FALSE(reader.integer(document->root()["a"], "/a"));
  CHECK_FALSE(reader.number(document->root()["b"], "/b"));
  CHECK_FALSE(reader.integer(document->root()["b"], "/b"));
  CHECK(diagnostics.render() ==
        "--set a: error: /a: expected an integer, got 2.0; write 2\n"
        "options: error: /b: expected a finite number, got nan\n"
        "options: error: /b: expected an integer, got nan\n");
}

TEST_CASE("many wrong elements are counted without being located") {
  std::string text = "[";
  for (int i = 0; i < 200000; ++i) text += i > 0 ? ",{}" : "{}";
  Diagnostics diagnostics(Source("m.json", text + "]"));
  const auto document = parse_json(diagnostics);
  REQUIRE(document);
  Reader reader(*document, diagnostics);
  CHECK_FALSE(reader.integers(document->root(), ""));
  CHECK(diagnostics.summary() == "200000 errors in m.json");
}
