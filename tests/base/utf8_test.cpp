#include "base/utf8.hpp"

#include "support/catch.hpp"

using namespace taper;

TEST_CASE("well-formed UTF-8 of every length is accepted") {
  for (const std::uint32_t code :
       {0x00u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text = "a";
    append_utf8(text, code);
    CAPTURE(code);
    CHECK(find_invalid_utf8(text + "b") == std::string::npos);
    // Cut in the middle of its last character it is refused at that character.
    if (text.size() > 2) CHECK(find_invalid_utf8(text.substr(0, text.size() - 1)) == 1);
  }
}

TEST_CASE("ill-formed UTF-8 is found where it starts") {
  CHECK(find_invalid_utf8("ab\x80") == 2);
  CHECK(find_invalid_utf8("a\xC0\xAF") == 1);          // overlong
  CHECK(find_invalid_utf8("a\xC1\xBF") == 1);          // overlong
  CHECK(find_invalid_utf8("a\xE0\x9F\xBF") == 1);      // overlong
  CHECK(find_invalid_utf8("a\xF0\x8F\xBF\xBF") == 1);  // overlong
  CHECK(find_invalid_utf8("abc\xED\xA0\x80") == 3);    // surrogate
  CHECK(find_invalid_utf8("\xF4\x90\x80\x80") == 0);   // above U+10FFFF
  CHECK(find_invalid_utf8("\xF5\x80\x80\x80") == 0);   // no such lead
  CHECK(find_invalid_utf8("\xC3(") == 0);              // no continuation
}

TEST_CASE("a code point is decoded from what was written, at the borders of its forms") {
  for (const std::uint32_t value :
       {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(text, value);
    const CodePoint point = decode_utf8(text + "z");
    CHECK(point.value == value);
    CHECK(point.size == text.size());
    if (text.size() > 1) CHECK(decode_utf8(text.substr(0, text.size() - 1)).size == 0);
  }
  for (const std::string bytes : {"", "\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                  "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x28\xA1"}) {
    CHECK(decode_utf8(bytes).size == 0);
  }
}
