#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "io/checksum.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/peak_memory.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

using namespace taper;
using namespace taper::io;

namespace {

/// A file of this header, as it is, and `data` zero bytes or these bytes.
std::string file(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

std::string safetensors_refusal(const std::string& bytes) {
  std::string sentence = "no error";
  try {
    safetensors_from_bytes(bytes, "w.safetensors");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::format);
    sentence = e.what();
  }
  return sentence;
}

std::string one_tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

std::vector<NamedTensor> weights() {
  return {{"fc.weight", tensor({{0.5, -1.25, 3}, {4, 5, 6}}, DType::float32)},
          {"fc.bias", tensor({1, -2}, DType::float32)},
          {"steps", tensor(17.0).to(DType::int64)},
          {"adam.m", tensor({0.1, 0.2, 0.3}, DType::float64)},
          {"empty", zeros({0, 5})}};
}

const Metadata kNotes = {{"format", "pt"}, {"config", "{\"lr\": 0.1}\n"}, {"author", "\xC3\xA9t\xC3\xA9 \\ \x01"}};

// safetensors.numpy.save({'w': (arange(6) - 2.5).reshape(2, 3), 'b': int64 [1, -2]}, metadata={'format': 'pt', 'note':
// ...}), written by safetensors 0.8.0.
const std::string kPython = file(
    "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"a \\\"b\\\"\\n\xC3\xA9\"},"
    "\"b\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[16,40]}}    ",
    std::string(
        "\x01\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\0\0 \xc0\0\0\xc0\xbf\0\0\0\xbf\0\0\0?\0\0\xc0?\0\0 @", 40));

}  // namespace

TEST_CASE("a file of the safetensors package is read") {
  const SafetensorsFile read = safetensors_from_bytes(kPython);
  REQUIRE(read.tensors.size() == 2);
  REQUIRE(read.find("b"));
  CHECK(read.find("b")->to_vector<std::int64_t>() == std::vector<std::int64_t>{1, -2});
  REQUIRE(read.find("w"));
  CHECK(read.find("w")->shape() == Shape{2, 3});
  CHECK(read.find("w")->to_vector<float>() == std::vector<float>{-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f});
  CHECK_FALSE(read.find("c"));
  CHECK(read.metadata == Metadata{{"format", "pt"}, {"note", "a \"b\"\n\xC3\xA9"}});
  CHECK(*read.find_metadata("format") == "pt");
  CHECK_FALSE(read.find_metadata("lr"));
}

TEST_CASE("the written file is that of the safetensors package plus checksums") {
  const std::vector<NamedTensor> tensors = {{"w", tensor({{-2.5, -1.5, -0.5}, {0.5, 1.5, 2.5}})},
                                            {"b", tensor({1, -2})}};
  const std::string sums = R"("taper.crc32":"{\"b\":\")" + hex(crc32(kPython.substr(kPython.size() - 40, 16))) +
                           R"(\",\"w\":\")" + hex(crc32(kPython.substr(kPython.size() - 24))) + R"(\"}")";
  const auto header = [&](const std::string& header_sum) {
    std::string text = R"({"__metadata__":{"taper.header_crc32":")" + header_sum +
                       R"(","format":"pt","note":"a \"b\"\n)" + "\xC3\xA9" + R"(",)" + sums +
                       R"(},"b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]})" +
                       R"(,"w":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]}})";
    while (text.size() % 8 != 0) text += ' ';
    return text;
  };
  const std::string expected = file(header(hex(crc32(header("00000000")))), kPython.substr(kPython.size() - 40));
  CHECK(safetensors_to_bytes(tensors, {{"note", "a \"b\"\n\xC3\xA9"}}) == expected);
  CHECK(safetensors_to_bytes({tensors[1], tensors[0]}, {{"note", "a \"b\"\n\xC3\xA9"}}) == expected);
}

TEST_CASE("what is saved is loaded, and saved again gives the same bytes") {
  const TempFolder folder;
  const std::string path = folder / "w.safetensors";
  save_safetensors(path, weights(), kNotes);
  const SafetensorsFile read = load_safetensors(path);
  CHECK(read.metadata == kNotes);
  REQUIRE(read.tensors.size() == weights().size());
  for (const auto& [name, expected] : weights()) {
    CAPTURE(name);
    REQUIRE(read.find(name));
    CHECK(npy_to_bytes(*read.find(name)) == npy_to_bytes(expected));
  }
  std::vector<std::string> order;
  for (const auto& named : read.tensors) order.push_back(named.name);
  CHECK(order == std::vector<std::string>{"adam.m", "steps", "empty", "fc.bias", "fc.weight"});
  CHECK(safetensors_to_bytes(read.tensors, read.metadata) == slurp(path));
  CHECK(slurp(path) == safetensors_to_bytes(weights(), kNotes));
}

TEST_CASE("every element type of the format is read") {
  const auto read = [](const std::string& dtype, const std::string& shape, const std::string& data) {
    return *safetensors_from_bytes(file(one_tensor(dtype, shape, "[0," + std::to_string(data.size()) + "]"), data))
                .find("x");
  };
  using Integers = std::vector<std::int64_t>;
  CHECK(read("BF16", "[2]", std::string("\xC0\x3F\x20\xC0", 4)).to_vector<float>() == std::vector<float>{1.5f, -2.5f});
  CHECK(read("F16", "[2]", std::string("\0\x3E\0\xC1", 4)).to_vector<float>() == std::vector<float>{1.5f, -2.5f});
  CHECK(read("F16", "[2]", "abcd").dtype() == DType::float32);
  CHECK(read("F64", "[]", std::string("\0\0\0\0\0\0\x04\xC0", 8)).item() == -2.5);
  CHECK(read("I32", "[1]", "\xFE\xFF\xFF\xFF").to_vector<std::int64_t>() == Integers{-2});
  CHECK(read("I16", "[1]", "\xFE\xFF").to_vector<std::int64_t>() == Integers{-2});
  CHECK(read("I8", "[3,1]", "\xFE\x7F\x80").to_vector<std::int64_t>() == Integers{-2, 127, -128});
  CHECK(read("U8", "[3]", "\xFE\x7F\x80").to_vector<std::int64_t>() == Integers{254, 127, 128});
  CHECK(read("BOOL", "[2]", std::string("\1\0", 2)).to_vector<std::int64_t>() == Integers{1, 0});
  CHECK(read("F32", "[3,0,7]", "").shape() == Shape{3, 0, 7});
  CHECK(safetensors_refusal(file(one_tensor("F8_E4M3", "[1]", "[0,1]"), "x")) ==
        "w.safetensors: tensor x: element type is not read: expected F64, F32, F16, BF16, I64, I32, I16, I8, U8 or "
        "BOOL, got F8_E4M3");
}

TEST_CASE("a header length that does not fit the file is refused", "[fault-110]") {
  const auto length = [](const std::string& first, const std::string& rest) {
    return safetensors_refusal(first + rest);
  };
  for (std::size_t size = 0; size < 10; ++size)
    CHECK(safetensors_refusal(std::string(size, '\xFF')) ==
          "w.safetensors: file is too short: expected at least 10 bytes, got " + std::to_string(size));
  const std::string range = "w.safetensors: header length is out of range: expected 2 to 2, got ";
  CHECK(length("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "{}") == range + "18446744073709551615");
  CHECK(length("\xFB\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "{}") == range + "18446744073709551611");
  CHECK(length(std::string("\x03\0\0\0\0\0\0\0", 8), "{}") == range + "3");
  CHECK(length(std::string(8, '\0'), "{}") == range + "0");
  CHECK(safetensors_from_bytes(file("{}")).tensors.empty());
}

TEST_CASE("a data range that differs from type and shape is refused", "[fault-107]") {
  CHECK(safetensors_refusal(file(one_tensor("F32", "[32,8]", "[0,65536]"), std::string(65536, 'x'))) ==
        "w.safetensors: tensor x: data range differs from type and shape: expected 1024 bytes for F32 [32, 8], got "
        "65536");
  CHECK(safetensors_refusal(file(one_tensor("F32", "[1000,1000]", "[0,4]"), "1234")) ==
        "w.safetensors: tensor x: data range differs from type and shape: expected 4000000 bytes for F32 [1000, 1000], "
        "got 4");
  CHECK(safetensors_refusal(file(one_tensor("F32", "[1000,1000]", "[0,4000000]"), "1234")) ==
        "w.safetensors: tensor x: data range lies outside the file: expected an end <= 4, got 4000000");
  CHECK(safetensors_refusal(file(one_tensor("F32", "[1]", "[4,0]"), "1234")) ==
        "w.safetensors: tensor x: data range is reversed: expected begin <= end, got [4, 0]");
  const std::string too_large = "w.safetensors: tensor x: shape is too large: expected less than 2^63 bytes, got ";
  CHECK(safetensors_refusal(file(one_tensor("F32", "[9223372036854775807,2,1,1]", "[0,4]"), "1234")) ==
        too_large + "[9223372036854775807, 2, 1, 1]");
  CHECK(safetensors_refusal(file(one_tensor("F32", "[4398046511105,4398046511105]", "[0,4]"), "1234")) ==
        too_large + "[4398046511105, 4398046511105]");
  CHECK(safetensors_refusal(file(one_tensor("F32", "[0,4611686018427387904]", "[0,0]"))) ==
        too_large + "[0, 4611686018427387904]");
  CHECK(safetensors_refusal(file(one_tensor("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "1234")) ==
        "w.safetensors: tensor x: too many dimensions: expected at most 8");
}

TEST_CASE("data with a hole, an overlap or more bytes than the tensors is refused", "[fault-108]") {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    return safetensors_refusal(file(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":)" + a +
                                        R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}",
                                    std::string(data, 'x')));
  };
  CHECK(two("[0,3]", "[3,5]", 5) == "no error");
  CHECK(two("[2,5]", "[0,2]", 5) == "no error");
  CHECK(two("[0,3]", "[4,6]", 6) == "w.safetensors: tensor b: a hole before its data: expected begin 3, got 4");
  CHECK(two("[0,3]", "[2,4]", 4) == "w.safetensors: tensor b: data overlaps another tensor: expected begin 3, got 2");
  CHECK(two("[1,4]", "[4,6]", 6) == "w.safetensors: tensor a: a hole before its data: expected begin 0, got 1");
  CHECK(two("[0,3]", "[3,5]", 6) == "w.safetensors: bytes after the last tensor: expected 5 bytes of data, got 6");
  CHECK(two("[0,3]", "[3,5]", 4) ==
        "w.safetensors: tensor b: data range lies outside the file: expected an end <= 4, got 5");
}

TEST_CASE("a header outside the grammar is refused at its byte") {
  const auto header = [](const std::string& text) { return safetensors_refusal(file(text, "1234")); };
  const std::string at = "w.safetensors: header byte ";
  CHECK(header(" {}") == at + "0: expected '{', got ' '");
  CHECK(header("[]") == at + "0: expected '{', got '['");
  CHECK(header("{} x") == at + "3: expected only spaces after the last brace, got 'x'");
  CHECK(header("{}\n") == at + "2: expected only spaces after the last brace, got the byte 10");
  CHECK(header("{\"x\"") == at + "4: expected ':', got the end");
  CHECK(header("{\"x\":[") == at + "5: expected '{', got '['");
  CHECK(header(std::string(512000, '[')) == at + "0: expected '{', got '['");
  CHECK(header("{\"x\":" + std::string(512000, '{')) == at + "6: expected a string, got '{'");
  CHECK(header(R"({"x":{"dtype":"F32",})") == at + "20: expected a string, got '}'");
  CHECK(header(R"({"x":{"shape":[-1]}})") == at + "15: expected an integer from 0, got '-'");
  CHECK(header(R"({"x":{"shape":[01]}})") == at + "16: expected no digit after a leading 0, got '1'");
  CHECK(header(R"({"x":{"shape":[1.5]}})") == at + "16: expected ']', got '.'");
  CHECK(header(R"({"x":{"shape":[1e3]}})") == at + "16: expected ']', got 'e'");
  CHECK(header(R"({"x":{"shape":["1"]}})") == at + "15: expected an integer from 0, got '\"'");
  CHECK(header(R"({"x":{"shape":[9223372036854775808]}})") == at + "33: expected an integer below 2^63, got '8'");
  CHECK(header(R"({"x":{"data_offsets":[0]}})") == at + "23: expected ',', got ']'");
  CHECK(header("{\"a\nb\":1}") == at + "3: expected the closing quote of a string, got the byte 10");
  CHECK(header(R"({"a\q":1})") == at + R"(4: expected one of \" \\ \/ \b \f \n \r \t \u, got 'q')");
  CHECK(header(R"({"a\u12g4":1})") == at + "7: expected four hexadecimal digits, got 'g'");
  const std::string surrogate = ": expected a character that is neither NUL nor half of a surrogate pair, got ";
  CHECK(header(R"({"a\ud800":1})") == at + "5" + surrogate + "'d'");
  CHECK(header(R"({"a\udc00\ud800":1})") == at + "5" + surrogate + "'d'");
  CHECK(header(R"({"a\ud800\u0041":1})") == at + "5" + surrogate + "'d'");
  CHECK(header(R"({"a\u0000":1})") == at + "5" + surrogate + "'0'");
  CHECK(header("{\"\xC0\xAF\":1}") == at + "2: expected UTF-8");
  CHECK(header("\xEF\xBB\xBF{}") == at + "0: expected '{', got the byte 239");
}

TEST_CASE("keys that are missing, unknown or given twice are refused") {
  const std::string x = R"("x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const auto header = [](const std::string& text) { return safetensors_refusal(file("{" + text + "}", "1234")); };
  CHECK(header(x) == "no error");
  CHECK(header(x + "," + x) == "w.safetensors: duplicate tensor name: x");
  CHECK(header(x + R"(,"\u0078":{"dtype":"F32","shape":[0],"data_offsets":[4,4]})") ==
        "w.safetensors: duplicate tensor name: x");
  CHECK(header(R"("__metadata__":{},"__metadata__":{},)" + x) ==
        "w.safetensors: duplicate key in the header: __metadata__");
  CHECK(header(R"("__metadata__":{"a":"1","a":"2"},)" + x) == "w.safetensors: duplicate metadata key: a");
  CHECK(header(R"("__metadata__":{"a":1},)" + x) == "w.safetensors: header byte 21: expected a string, got '1'");
  CHECK(header(R"("x":{"dtype":"F32","dtype":"F32"})") == "w.safetensors: tensor x: duplicate key: dtype");
  CHECK(header(R"("x":{"dtype":"F32","shape":[1]})") == "w.safetensors: tensor x: key is missing: data_offsets");
  CHECK(header(R"("x":{"type":"F32"})") ==
        "w.safetensors: tensor x: unknown key: expected dtype, shape or data_offsets, got type");
  CHECK(header(R"("\u00e9\ud83d\ude00\/\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})") == "no error");
  CHECK(safetensors_from_bytes(
            file(R"({"\u00e9\ud83d\ude00\/\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"))
            .tensors[0]
            .name == "\xC3\xA9\xF0\x9F\x98\x80/\n");
}

TEST_CASE("a saved file is refused at every shorter length and with any byte after its end") {
  const std::string whole = safetensors_to_bytes(weights(), kNotes);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(safetensors_refusal(whole.substr(0, size)) != "no error");
  CHECK(safetensors_refusal(whole + '\0') != "no error");
}

TEST_CASE("one changed bit anywhere in a saved file is found") {
  const std::string whole = safetensors_to_bytes(weights(), kNotes);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = char(bytes[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit / 8, bit % 8);
    CHECK(safetensors_refusal(bytes) != "no error");
  }
}

TEST_CASE("changed bits in the data of a large tensor are found, and the tensor is named") {
  const std::vector<NamedTensor> tensors = {{"big", zeros({101, 103})}};
  const std::string whole = safetensors_to_bytes(tensors);
  const std::size_t data = whole.size() - 4 * 101 * 103;
  Generator generator{7, Stream::data, 0};
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    const std::size_t bit = random_below(generator.next(), 8 * (whole.size() - data));
    bytes[data + bit / 8] = char(bytes[data + bit / 8] ^ (1 << bit % 8));
    if (!safetensors_refusal(bytes).starts_with("w.safetensors: tensor big: data is damaged: expected checksum "))
      FAIL("bit " << bit);
  }
}

TEST_CASE("checksums that are incomplete or moved are refused") {
  const std::string x = R"("x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const auto metadata = [&](const std::string& text) {
    return safetensors_refusal(file(R"({"__metadata__":{)" + text + "}," + x, "1234"));
  };
  const std::string incomplete =
      "w.safetensors: checksums are incomplete: expected both taper.header_crc32 (first) and taper.crc32 in the "
      "metadata, or neither";
  CHECK(metadata(R"("taper.crc32":"{\"x\":\"9be3e0a3\"}")") == incomplete);
  CHECK(metadata(R"("format":"pt","taper.header_crc32":"00000000")") == incomplete);
  CHECK(metadata(R"("taper.header_crc32":"00000000","taper.crc32":"{}")") ==
        "w.safetensors: header is damaged: expected checksum 00000000, got " +
            hex(crc32(R"({"__metadata__":{"taper.header_crc32":"00000000","taper.crc32":"{}"},)" + x)));
}

TEST_CASE("tensors and metadata that cannot be written are refused before the file is touched") {
  const TempFolder folder;
  const std::string path = folder.write("w.safetensors", "old");
  const auto save = [&](const std::vector<NamedTensor>& tensors, const Metadata& metadata = {}) {
    const std::string sentence = test::message_of([&] { save_safetensors(path, tensors, metadata); });
    CHECK(slurp(path) == "old");
    return sentence;
  };
  const Tensor one = ones({1});
  CHECK(save({}) == "save_safetensors: number of tensors: expected 1 to 10000, got 0");
  CHECK(save({{"a", one}, {"b", one}, {"a", one}}) == "save_safetensors: duplicate tensor name: a");
  CHECK(save({{"a", Tensor()}}) == "save_safetensors: tensor is undefined: a");
  CHECK(save({{"__metadata__", one}}) == "save_safetensors: name is reserved: __metadata__");
  CHECK(save({{"a\xFF", one}}) == "save_safetensors: text is not UTF-8: a\xFF");
  CHECK(save({{std::string("a\0b", 3), one}}) == "save_safetensors: text holds NUL: a?b");
  CHECK(save({{"a", one}}, {{"k", "1"}, {"k", "2"}}) == "save_safetensors: duplicate metadata key: k");
  CHECK(save({{"a", one}}, {{"taper.crc32", "1"}}) == "save_safetensors: metadata key is reserved: taper.crc32");
  CHECK(save({{"a", one}}, {{"k", "\xED\xA0\x80"}}) == "save_safetensors: text is not UTF-8: \xED\xA0\x80");
}

TEST_CASE("a lying file takes no more memory than its length and 1 MiB", "[fault-112]") {
  const TempFolder folder;
  std::string many = "{";
  for (int i = 0; i < 200000; ++i)
    many += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"I8","shape":[],"data_offsets":[0,1]})";
  std::string notes = R"({"__metadata__":{)";
  for (int i = 0; i < 500000; ++i) notes += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  const std::vector<std::string> files = {file(many + "}", "x"), file(notes + "}}", "x"),
                                          file(one_tensor("F32", "[250000000]", "[0,1000000000]"), "1234")};
  for (const auto& bytes : files) {
    const std::string path = folder.write("w.safetensors", bytes);
    std::string sentence;
    const auto growth = peak_growth([&] { sentence = test::message_of([&] { load_safetensors(path); }); });
    CAPTURE(sentence);
    CHECK(sentence.starts_with(path));
    if (growth) CHECK(*growth < std::int64_t(bytes.size()) + (1 << 20));
  }
}
