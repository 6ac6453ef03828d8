#include "config/json_text.hpp"

#include "base/fail.hpp"
#include "support/catch.hpp"

using namespace taper;
using namespace taper::config;

namespace {

/// The headlines of what is reported, without the file's name: "1:7: /a: expected ...".
std::string findings(const std::string& text) {
  Diagnostics diagnostics(Source("m.json", text));
  const auto document = parse_json(diagnostics);
  if (!document) REQUIRE_FALSE(diagnostics.empty());
  const std::string all = diagnostics.render();
  std::string out;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find('\n', at);
    std::string line = all.substr(at, end - at);
    if (line.starts_with("m.json:")) {
      line.erase(0, 7).erase(line.find("error: "), 7);
      out += (out.empty() ? "" : "\n") + line;
    }
    at = end + 1;
  }
  return out;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

bool has_tree(const std::string& text) {
  Diagnostics diagnostics(Source("m.json", text));
  return parse_json(diagnostics).has_value();
}

Document document_of(const std::string& text) {
  Diagnostics diagnostics(Source("m.json", text));
  auto document = parse_json(diagnostics);
  REQUIRE(diagnostics.empty());
  return *std::move(document);
}

}  // namespace

TEST_CASE("a JSON text becomes a tree that keeps the order of its keys") {
  const Document document =
      document_of("\xEF\xBB\xBF {\"z\": [1, -2.5e3, true],\r\n \"a\": {\"\\u00e9\\ud83d\\ude00\": null}} \n");
  CHECK(document.root().dump() == "{\"z\":[1,-2500.0,true],\"a\":{\"é😀\":null}}");
  CHECK(document_of("3").root() == 3);
  CHECK(document_of("9223372036854775807").root().get<std::int64_t>() == INT64_MAX);
  CHECK(document_of("[4294967298]").root()[0].get<std::int64_t>() == 4294967298);
  CHECK(document_of("[5e-324, 1.7976931348623157e308, 0e9999999999999999999]").root().size() == 3);
}

TEST_CASE("every value and key is found by its pointer, or what is nearest to it") {
  const std::string text = "{\"a/b\": [10, {\"c~d\": \"x\"}],\n \"\\u0065\": 7}";
  const Document document = document_of(text);
  const auto at = [&](const Place& place) {
    return text.substr(place.span->begin, place.span->end - place.span->begin);
  };
  CHECK(at(document.value_place("")) == text);
  CHECK(at(document.value_place("/a~1b")) == "[10, {\"c~d\": \"x\"}]");
  CHECK(at(document.key_place("/a~1b")) == "\"a/b\"");
  CHECK(at(document.value_place("/a~1b/0")) == "10");
  CHECK(at(document.key_place("/a~1b/0")) == "10");
  CHECK(at(document.value_place("/a~1b/1/c~0d")) == "\"x\"");
  CHECK(at(document.key_place("/a~1b/1/c~0d")) == "\"c~d\"");
  CHECK(at(document.key_place("/e")) == "\"\\u0065\"");
  CHECK(at(document.value_place("/e/missing/0")) == "7");
  CHECK(at(document.key_place("/e/missing")) == "7");
  CHECK(at(document.value_place("/a~1b/2")) == "[10, {\"c~d\": \"x\"}]");
  CHECK(at(document.value_place("/a~1b/18446744073709551616")) == "[10, {\"c~d\": \"x\"}]");
  CHECK(document.literal("/e", 7) == "7");
  CHECK(child(child("/a", "b/c~d"), 5) == "/a/b~1c~0d/5");
}

TEST_CASE("a value that is set has an origin in place of a position") {
  Document document = document_of(R"({"layers": [{"x": 1}, {"y": 2}], "n": 3})");
  CHECK(document.set("/layers/1", {{"k", 2.5}}, "--set layers[1]"));
  CHECK(document.set("/layers/1/k", 11, "--set layers[1].k"));
  CHECK(document.set("/new", "v", "--set new"));
  CHECK_FALSE(document.set("/layers/2", 1, "o"));
  CHECK_FALSE(document.set("/none/x", 1, "o"));
  CHECK_FALSE(document.set("/n/x", 1, "o"));
  CHECK(document.root().dump() == R"({"layers":[{"x":1},{"k":11}],"n":3,"new":"v"})");
  CHECK(document.value_place("/layers/1").origin == "--set layers[1]");
  CHECK(document.key_place("/layers/1/k").origin == "--set layers[1].k");
  CHECK(document.value_place("/layers/1/other").origin == "--set layers[1]");
  CHECK(document.value_place("/layers/10").origin.empty());
  CHECK(document.value_place("/layers/0/x").span.has_value());
  CHECK(Document(Json{{"a", 1}}, "train_options").value_place("/a").origin == "train_options");
  CHECK_FALSE(Document(Json(5)).value_place("/a").span.has_value());
}

TEST_CASE("duplicate keys are all reported and the last one stands in the tree", "[fault-115]") {
  const std::string text = "{\"a\": 1, \"b\": {\"c\": 1,\n  \"\\u0063\": 2}, \"a\": 3,\n \"a\": {\"k\": 5}}";
  CHECK(findings(text) ==
        "2:3: /b/c: duplicate key: expected each key once; the first is in line 1, column 16\n"
        "2:17: /a: duplicate key: expected each key once; the first is in line 1, column 2\n"
        "3:2: /a: duplicate key: expected each key once; the first is in line 1, column 2");
  Diagnostics diagnostics(Source("m.json", text));
  const auto document = parse_json(diagnostics);
  REQUIRE(document);
  CHECK(document->root().dump() == R"({"a":{"k":5},"b":{"c":2}})");
  CHECK(document->literal("/a/k", 0) == "5");
  CHECK(document->literal("/b/c", 0) == "2");
}

TEST_CASE("a key with a NUL character is refused and the rest can still be checked") {
  CHECK(findings(R"({"a\u0000b": 1})") ==
        "1:2: /a\\u0000b: expected a key of printable characters, got one with U+0000");
  CHECK(has_tree(R"({"a\u0000b": 1})"));
}

TEST_CASE("numbers that JSON does not have are named with what is wrong") {
  CHECK(findings("[1e999]") == "1:2: /0: number out of range: expected a size of at most 1.797e+308, got 1e999");
  CHECK(findings("[-1e400]") == "1:2: /0: number out of range: expected a size of at most 1.797e+308, got -1e400");
  CHECK(findings("[1e-400]") == "1:2: /0: number out of range: expected 0 or a size of at least 4.94e-324, got 1e-400");
  CHECK(findings("[1e99999999999999999999]") ==
        "1:2: /0: number out of range: expected a size of at most 1.797e+308, got 1e99999999999999999999");
  CHECK(findings(std::string("1") + repeated("0", 400) + "e-5") ==
        std::string("1:1: number out of range: expected a size of at most 1.797e+308, got 1") + repeated("0", 59) +
            "...");
  CHECK(findings(std::string("0.") + repeated("0", 400) + "1") ==
        std::string("1:1: number out of range: expected 0 or a size of at least 4.94e-324, got 0.") +
            repeated("0", 58) + "...");
  for (const std::string word : {"NaN", "nan", "Infinity", "-Infinity", "inf", "+Inf"}) {
    CHECK(findings("{\"lr\": " + word + "}") ==
          "1:8: /lr: expected a finite number, got " + word + "; JSON has no NaN and no infinity");
  }
  CHECK(findings("[01, -007]") ==
        "1:2: /0: expected a number, got 01; a number has no leading zeros\n"
        "1:6: /1: expected a number, got -007; a number has no leading zeros");
  CHECK(findings("[+1]") == "1:2: /0: expected a number, got +1; a number has no plus sign");
  for (const std::string number : {".5", "5.", "-.5", "5.e3"}) {
    CHECK(findings("[" + number + "]") ==
          "1:2: /0: expected a number, got " + number + "; a number has digits on both sides of its point");
  }
  CHECK(findings("[0x10]") == "1:2: /0: expected a number, got 0x10; a number has decimal digits only");
  CHECK(findings("[1_000]") == "1:2: /0: expected a number, got 1_000; a number has decimal digits only");
  CHECK(findings("[1e, -]") == "1:2: /0: expected a number, got 1e\n1:6: /1: expected a number, got -");
}

TEST_CASE("words that JSON does not have are named with what to write") {
  CHECK(findings("[True]") == "1:2: /0: expected a value, got True; write true");
  CHECK(findings("[FALSE]") == "1:2: /0: expected a value, got FALSE; write false");
  CHECK(findings("[None]") == "1:2: /0: expected a value, got None; write null");
  CHECK(findings("{\"type\": Adam}") == "1:10: /type: expected a value, got Adam; a string is written \"Adam\"");
  CHECK(findings("{type: 1, x-y: 2}") ==
        "1:2: expected a key in double quotes, got type; write \"type\"\n"
        "1:11: expected a key in double quotes, got x-y; write \"x-y\"");
  CHECK(findings("{'a': 'b c'}") ==
        "1:2: expected double quotes, got 'a'; write \"a\"\n1:7: /a: expected double quotes, got 'b c'; write \"b c\"");
  CHECK(findings("[“a”]") == "1:2: expected a value or ']', got '“'; strings stand in plain double quotes");
  CHECK(findings("[\u00A01]") == "1:2: expected a value or ']', got '\u00A0'; this is a no-break space");
}

TEST_CASE("comments and trailing commas are reported one by one") {
  CHECK(findings("// a\n{\"a\": [1, 2,], /* b\n */ \"b\": {\"c\": 1,\n}, # c\n}") ==
        "1:1: expected JSON, got a comment; JSON has no comments\n"
        "2:12: /a: trailing comma: expected no ',' before the closing bracket; remove it\n"
        "2:16: expected JSON, got a comment; JSON has no comments\n"
        "3:17: /b: trailing comma: expected no ',' before the closing bracket; remove it\n"
        "4:2: trailing comma: expected no ',' before the closing bracket; remove it\n"
        "4:4: expected JSON, got a comment; JSON has no comments");
}

TEST_CASE("strings are checked for UTF-8, escapes, surrogates and control characters", "[fault-115]") {
  CHECK(findings("[\"\xE9t\xE9\", \"\xFF\"]") ==
        "1:3: /0: invalid UTF-8: expected text in UTF-8, got the byte 0xe9; save the file as UTF-8");
  // Overlong, a surrogate, over U+10FFFF, cut.
  for (const std::string bytes : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
    CHECK(
        findings("{\"é" + bytes + "\": 1}").starts_with("1:4: invalid UTF-8: expected text in UTF-8, got the byte 0x"));
  }
  CHECK(findings(R"(["\ud800"])") ==
        "1:3: /0: lone surrogate: expected \\ud800 to be followed by one of \\udc00 to \\udfff");
  CHECK(findings(R"(["\uD83d\u0041"])") ==
        "1:3: /0: lone surrogate: expected \\uD83d to be followed by one of \\udc00 to \\udfff");
  CHECK(findings(R"(["a\udc00"])") == "1:4: /0: lone surrogate: expected one of \\ud800 to \\udbff before \\udc00");
  CHECK(
      findings(R"(["C:\data\x"])") ==
      "1:5: /0: unknown escape: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX, got \\d; write \\\\ for a "
      "backslash\n"
      "1:10: /0: unknown escape: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX, got \\x; write \\\\ for a "
      "backslash");
  CHECK(findings(R"(["\u12g4"])") == "1:3: /0: unknown escape: expected \\u and four hexadecimal digits, got \\u12g4");
  CHECK(findings("[\"\\u1é\"]") == "1:3: /0: unknown escape: expected \\u and four hexadecimal digits, got \\u1");
  CHECK(findings(R"(["\u12"])") == "1:3: /0: unknown escape: expected \\u and four hexadecimal digits, got \\u12");
  CHECK(findings("[\"a\tb\"]") == "1:4: /0: control character in a string: expected the escape \\t, got the byte 0x09");
  CHECK(findings(std::string("[\"\0\x1B\"]", 6)) ==
        "1:3: /0: control character in a string: expected the escape \\u0000, got the byte 0x00\n"
        "1:4: /0: control character in a string: expected the escape \\u001b, got the byte 0x1b");
  CHECK(findings("{\"a\": \"b,\n \"c\": 1}") ==
        "1:7: /a: unterminated string: expected a closing quote, got the end of the line; a line break is written \\n");
  CHECK(findings("[\"ab") == "1:2: /0: unterminated string: expected a closing quote, got the end of the text");
  CHECK(findings("[\"ab\\") ==
        "1:2: /0: unterminated string: expected a closing quote, got the end of the text\n"
        "1:5: /0: unknown escape: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX, got \\; write \\\\ for a "
        "backslash");
  CHECK(findings("['ab\n']") ==
        "1:2: /0: unterminated string: expected a closing quote, got the end of the line; a line break is written \\n");
}

TEST_CASE("broken structure ends the pass with what was expected and what stands there") {
  CHECK(findings("") == "1:1: expected a value, got the end of the text; the text is empty");
  CHECK(findings(" \n\n") == "1:1: expected a value, got the end of the text; the text is empty");
  CHECK(findings("{\n  \"a\": [1,\n\n") ==
        "2:11: /a: expected a value, got the end of the text; the '[' in line 2, column 8 is not closed");
  CHECK(findings("{\"a\"") ==
        "1:5: expected ':' after the key, got the end of the text; the '{' in line 1, column 1 is not closed");
  CHECK(findings("{\"a\": 1 \"b\": 2}") ==
        "1:9: expected ',' or '}', got the string \"b\"; a comma is missing before it");
  CHECK(findings("[1 2]") == "1:4: expected ',' or ']', got 2; a comma is missing before it");
  CHECK(findings("{\"a\": [1, 2}") ==
        "1:12: /a: expected ',' or ']', got '}'; the '[' in line 1, column 7 is not closed");
  CHECK(findings("[1]]") == "1:4: expected the end of the text, got ']'; one closing bracket is too many");
  CHECK(findings("{} x") == "1:4: expected the end of the text, got x");
  CHECK(findings("[1,,2]") == "1:4: expected a value, got ','; one comma is too many");
  CHECK(findings("[,1]") == "1:2: expected a value or ']', got ','; one comma is too many");
  CHECK(findings("{\"a\" = 1}") == "1:6: expected ':' after the key, got '='");
  CHECK(findings("{\"a\": }") == "1:7: expected a value, got '}'");
  CHECK(findings("{3: 1}") == "1:2: expected a key in double quotes, got 3; write \"3\"");
  CHECK(findings("{[1]: 1}") == "1:2: expected a key in double quotes or '}', got '['");
  CHECK(findings(std::string("{}\0", 3)) == "1:3: expected the end of the text, got '\\u0000'; save the file as UTF-8");
  CHECK(findings("\xFF\xFE{") == "1:1: expected a value, got a byte that is not UTF-8; save the file as UTF-8");
  CHECK(findings("{}\xEF\xBB\xBF") == "1:3: expected the end of the text, got '\\ufeff'");
}

TEST_CASE("nesting is bounded before any tree exists", "[fault-114]") {
  CHECK(has_tree(repeated("[", 32) + repeated("]", 32)));
  CHECK_FALSE(has_tree(repeated("[", 33) + repeated("]", 33)));
  const std::string path = repeated("/0", 32);
  const std::string message = ": nested too deep: expected at most 32 arrays and objects inside each other, got 33";
  CHECK(findings(repeated("[", 512000)) == "1:33: " + path + message);
  CHECK(findings(repeated("[", 100000) + repeated("]", 100000)) == "1:33: " + path + message);
  CHECK(findings(repeated("{\"a\":", 100000) + "1" + repeated("}", 100000)) ==
        std::string("1:161: ") + repeated("/a", 32) + message);
}

TEST_CASE("hostile sizes cost neither time nor memory") {
  CHECK(findings(std::string(kMaxTextSize + 1, ' ')) ==
        "1:1: text is too long: expected at most 4194304 bytes, got 4194305");
  std::string keys = "{";
  for (int i = 0; i < 1025; ++i) keys += cat(i > 0 ? "," : "", "\"", i, "\":0");
  CHECK(findings(keys + "}") == "1:8108: too many keys: expected at most 1024 in one object");
  // A long key above many values: pointers as long as the text, as many as it has values.
  const std::string key(1 << 16, 'k');
  Diagnostics diagnostics(Source("m.json", "{\"" + key + "\":[" + repeated("x,", 50000) + "1]}"));
  CHECK_FALSE(parse_json(diagnostics));
  CHECK(diagnostics.count() == 50000);
  CHECK(diagnostics.sentences().size() < 40000);
  Diagnostics none(Source("m.json", "{\"" + key + "\":[" + repeated("\"x\",", 50000) + "1]}"));
  CHECK(parse_json(none));
  CHECK(none.empty());
  // Something wrong in every byte of a string, and the same key again and again on one long line.
  CHECK_FALSE(has_tree(std::string("\"") + repeated("\x01", 1 << 18) + "\""));
  Diagnostics same(Source("m.json", std::string("{") + repeated("\"a\":1,", 50000) + "\"a\":2}"));
  CHECK(parse_json(same)->root().dump() == "{\"a\":2}");
  CHECK(same.count() == 50000);
}
