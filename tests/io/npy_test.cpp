#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/hex.hpp"
#include "support/message_of.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

using namespace taper;
using namespace taper::io;

namespace {

// Written by NumPy 2.3.5: (arange(6) - 2.5).reshape(2, 3) and others of that kind.
const std::string kFloat32 = unhex(
    "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c2027"
    "7368617065273a2028322c2033292c207d2020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020200a000020c00000c0bf000000bf0000003f0000c03f00002040");
const std::string kFloat64 = unhex(
    "934e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f72646572273a2046616c73652c2027"
    "7368617065273a2028332c292c207d20202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020200a00000000000004c0000000000000f8bf000000000000e0bf");
const std::string kInt64 = unhex(
    "934e554d5059010076007b276465736372273a20273c6938272c2027666f727472616e5f6f72646572273a2046616c73652c2027"
    "7368617065273a2028322c292c207d20202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020200af9ffffffffffffff0100000000002000");
const std::string kScalar = unhex(
    "934e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f72646572273a2046616c73652c2027"
    "7368617065273a2028292c207d202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020200a0000000000000440");
const std::string kEmpty = unhex(
    "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c2027"
    "7368617065273a2028302c2035292c207d2020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020200a");

/// An array with this header and these elements.
std::string npy(const std::string& header, const std::string& elements, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {char(major), '\0', char(header.size() & 255), char(header.size() >> 8)};
  if (major > 1) bytes += std::string(2, '\0');
  return bytes + header + elements;
}

std::string with(const std::string& descr, const std::string& shape, const std::string& elements,
                 const std::string& fortran = "False") {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n", elements);
}

std::string npy_refusal(const std::string& bytes) {
  return test::message_of([&] { npy_from_bytes(bytes, "x.npy"); });
}

}  // namespace

TEST_CASE("NPY is written byte for byte as NumPy writes it") {
  const Tensor values = tensor({{-2.5, -1.5, -0.5}, {0.5, 1.5, 2.5}});
  CHECK(npy_to_bytes(values) == kFloat32);
  CHECK(npy_to_bytes(tensor({-2.5, -1.5, -0.5}, DType::float64)) == kFloat64);
  CHECK(npy_to_bytes(tensor({-7, 9007199254740993})) == kInt64);
  CHECK(npy_to_bytes(scalar(2.5, DType::float64)) == kScalar);
  CHECK(npy_to_bytes(zeros({0, 5})) == kEmpty);
}

TEST_CASE("NPY of NumPy is read with its type, shape and values") {
  const Tensor a = npy_from_bytes(kFloat32);
  CHECK(a.dtype() == DType::float32);
  CHECK(a.shape() == Shape{2, 3});
  CHECK(a.to_vector<float>() == std::vector<float>{-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f});
  CHECK(npy_from_bytes(kFloat64).dtype() == DType::float64);
  CHECK(npy_from_bytes(kInt64).to_vector<std::int64_t>() == std::vector<std::int64_t>{-7, 9007199254740993});
  CHECK(npy_from_bytes(kScalar).shape() == Shape{});
  CHECK(npy_from_bytes(kScalar).item() == 2.5);
  CHECK(npy_from_bytes(kEmpty).shape() == Shape{0, 5});
}

TEST_CASE("a saved array is loaded with the same bits") {
  const TempFolder folder;
  const Tensor values = tensor({0.1, -0.0, std::numeric_limits<double>::quiet_NaN(), 1e-310, INFINITY}, DType::float64);
  save_npy(folder / "x.npy", values);
  CHECK(npy_to_bytes(load_npy(folder / "x.npy")) == npy_to_bytes(values));
  CHECK(folder.list() == std::vector<std::string>{"x.npy"});
}

TEST_CASE("every element type and byte order is read") {
  const auto integers = [](const std::string& descr, const std::string& elements) {
    const Tensor read = npy_from_bytes(with(descr, "(2,)", unhex(elements)));
    CHECK(read.dtype() == DType::int64);
    return read.to_vector<std::int64_t>();
  };
  const auto floats = [](const std::string& descr, const std::string& elements) {
    return npy_from_bytes(with(descr, "(2,)", unhex(elements))).to_vector<double>();
  };
  using Integers = std::vector<std::int64_t>;
  CHECK(integers("|i1", "fe7f") == Integers{-2, 127});
  CHECK(integers("|u1", "fe7f") == Integers{254, 127});
  CHECK(integers("|b1", "0001") == Integers{0, 1});
  CHECK(integers("<i2", "feff0301") == Integers{-2, 259});
  CHECK(integers(">i2", "fffe0103") == Integers{-2, 259});
  CHECK(integers("<u2", "feff0301") == Integers{65534, 259});
  CHECK(integers(">u2", "fffe0103") == Integers{65534, 259});
  CHECK(integers("<i4", "feffffff01000002") == Integers{-2, 33554433});
  CHECK(integers(">i4", "fffffffe02000001") == Integers{-2, 33554433});
  CHECK(integers("<u4", "feffffff01000002") == Integers{4294967294, 33554433});
  CHECK(integers(">u4", "fffffffe02000001") == Integers{4294967294, 33554433});
  CHECK(integers("<i8", "feffffffffffffff0100000000000002") == Integers{-2, 144115188075855873});
  CHECK(integers(">i8", "fffffffffffffffe0200000000000001") == Integers{-2, 144115188075855873});
  CHECK(integers(">u8", "7fffffffffffffff0200000000000001") == Integers{INT64_MAX, 144115188075855873});
  CHECK(floats("<f4", "0000c03f000020c0") == std::vector<double>{1.5, -2.5});
  CHECK(floats(">f4", "3fc00000c0200000") == std::vector<double>{1.5, -2.5});
  CHECK(floats("<f8", "000000000000f83f00000000000004c0") == std::vector<double>{1.5, -2.5});
  CHECK(floats(">f8", "3ff8000000000000c004000000000000") == std::vector<double>{1.5, -2.5});
  CHECK(floats("<f2", "003e00c1") == std::vector<double>{1.5, -2.5});
  CHECK(floats(">f2", "3e00c100") == std::vector<double>{1.5, -2.5});
  CHECK(npy_refusal(with("<u8", "(2,)", unhex("01000000000000000000000000000080"))) ==
        "x.npy: an unsigned integer does not fit int64: expected <= 9223372036854775807, got 9223372036854775808");
}

TEST_CASE("half precision keeps subnormal numbers, signs, infinities and NaN") {
  const Tensor read = npy_from_bytes(with("<f2", "(7,)", unhex("01000080ff03000400fcff7b007e")));
  const auto values = read.to_vector<double>();
  CHECK(values[0] == std::ldexp(1.0, -24));
  CHECK(values[1] == 0);
  CHECK(std::signbit(values[1]));
  CHECK(values[2] == std::ldexp(1023.0, -24));
  CHECK(values[3] == std::ldexp(1.0, -14));
  CHECK(values[4] == -INFINITY);
  CHECK(values[5] == 65504);
  CHECK(std::isnan(values[6]));
}

TEST_CASE("arrays stored with the first dimension fastest are read in row-major order") {
  std::string elements;
  for (int i = 0; i < 2 * 3 * 5; ++i) elements += char(i);
  const Tensor read = npy_from_bytes(with("|u1", "(2, 3, 5)", elements, "True"));
  CHECK(read.shape() == Shape{2, 3, 5});
  const auto* values = read.data<std::int64_t>();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 5; ++k) CHECK(values[(i * 3 + j) * 5 + k] == i + 2 * j + 6 * k);
  CHECK(npy_from_bytes(with("<f4", "(2, 0)", "", "True")).shape() == Shape{2, 0});
}

TEST_CASE("versions 2 and 3, other key orders and quotes are read") {
  const std::string header = "{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}\n";
  for (const int major : {1, 2, 3}) CHECK(npy_from_bytes(npy(header, "\x03\x01", major)).numel() == 2);
  CHECK(npy_refusal(npy(header, "\x03\x01", 4)) == "x.npy: NPY version is not read: expected 1.0, 2.0 or 3.0, got 4.0");
}

TEST_CASE("element types without a number are refused by name") {
  const std::string expected =
      "x.npy: element type is not read: expected f8, f4, f2, i8, i4, i2, i1, u8, u4, u2, u1 or b1, got ";
  CHECK(npy_refusal(with("|O", "(2,)", "12345678")) == expected + "|O (Python objects)");
  CHECK(npy_refusal(with("<U5", "(2,)", "12345678")) == expected + "<U5 (text)");
  CHECK(npy_refusal(with("|S3", "(2,)", "123456")) == expected + "|S3 (text)");
  CHECK(npy_refusal(with("<c8", "(1,)", "12345678")) == expected + "<c8 (complex numbers)");
  CHECK(npy_refusal(with("<M8[ns]", "(1,)", "12345678")) == expected + "<M8[ns] (dates)");
  CHECK(npy_refusal(with("f4", "(1,)", "1234")) == expected + "f4");
  CHECK(npy_refusal(with("|f4", "(1,)", "1234")) == expected + "|f4");
  CHECK(npy_refusal(with("", "(1,)", "1234")) == expected);
  CHECK(npy_refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}\n", "1234")) ==
        expected + "a record");
}

TEST_CASE("a header that is not exactly three keys is refused") {
  const auto header = [](const std::string& text) { return npy_refusal(npy(text, "1234")); };
  CHECK(header("{'descr': '<f4', 'fortran_order': False}\n") == "x.npy: key is missing in the header: shape");
  CHECK(header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n") ==
        "x.npy: duplicate key in the header: descr");
  CHECK(header("{'descr': '<f4', 'order': 'C'}\n") ==
        "x.npy: unknown key in the header: expected descr, fortran_order or shape, got order");
  CHECK(header("{'descr': '<f4', 'fortran_order': 0}\n") == "x.npy: header byte 34: expected True or False, got '0'");
  CHECK(header("{'shape': (1)}\n") == "x.npy: header byte 12: expected ',', got ')'");
  CHECK(header("{'shape': (-1,)}\n") == "x.npy: header byte 11: expected an integer from 0, got '-'");
  CHECK(header("{'shape': (9223372036854775808,)}\n") ==
        "x.npy: header byte 29: expected an integer below 2^63, got '8'");
  CHECK(header("{'shape': (1,1,1,1,1,1,1,1,1)}\n") == "x.npy: too many dimensions: expected at most 8");
  CHECK(header("__import__('os')") == "x.npy: header byte 0: expected '{', got '_'");
  CHECK(header("{'descr") == "x.npy: header byte 2: expected a closing quote, got 'd'");
  CHECK(header("") == "x.npy: header byte 0: expected '{', got the end");
  CHECK(npy_refusal(with("<f4", "(1,)", "1234").insert(70, "x")).starts_with("x.npy: "));
}

TEST_CASE("an array that is cut or padded is refused at every length") {
  for (const auto& whole : {kFloat32, kScalar}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(size);
      CHECK_THROWS_AS(npy_from_bytes(whole.substr(0, size)), Error);
    }
    CHECK_THROWS_AS(npy_from_bytes(whole + '\0'), Error);
  }
  CHECK(npy_refusal(kFloat32.substr(0, 5)) ==
        "x.npy: file is cut in its header: expected at least 8 more bytes, got 5");
  CHECK(npy_refusal(kFloat32.substr(0, 40)) ==
        "x.npy: file is cut in its header: expected at least 118 more bytes, got 30");
  CHECK(npy_refusal(kFloat32.substr(0, 150)) == "x.npy: file is cut: expected 24 bytes of elements, got 22");
  CHECK(npy_refusal(kFloat32 + "x") == "x.npy: bytes after the array: expected 24 bytes of elements, got 25");
  CHECK(npy_refusal("PK345678") == "x.npy: not an NPY file: its first bytes differ");
}

TEST_CASE("a shape that lies about its size is refused before memory is taken for it", "[fault-112]") {
  CHECK(npy_refusal(with("<f4", "(1000, 1000)", "1234")) ==
        "x.npy: file is cut: expected 4000000 bytes of elements, got 4");
  CHECK(npy_refusal(with("<f8", "(4611686018427387904,)", "1234")) ==
        "x.npy: shape is too large: expected less than 2^63 bytes");
  CHECK(npy_refusal(with("<f8", "(0, 9223372036854775807, 2)", "")) ==
        "x.npy: shape is too large: expected less than 2^63 bytes");
  std::string long_header = npy("{}", "", 2);
  long_header[10] = '\x01';
  CHECK(npy_refusal(long_header) == "x.npy: header is too long: expected at most 65535 bytes, got 65538");
}
