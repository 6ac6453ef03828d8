#include "io/zip.hpp"
#include "support/catch.hpp"
#include "support/hex.hpp"
#include "support/message_of.hpp"
#include "support/peak_memory.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

using namespace taper;
using namespace taper::io;

namespace {

// Written by NumPy 2.3.5: savez(x=(arange(6) - 2.5).reshape(2, 3), y=[3, 1]) and
// savez_compressed(x=tile(x, (5, 1)), y=int16 [3, 1]).
const std::string kStored = unhex(
    "504b03042d0000000000000021006d72dba7ffffffffffffffff05001400782e6e70790100100098000000000000009800000000"
    "000000934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c7365"
    "2c20277368617065273a2028322c2033292c207d2020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020202020200a000020c00000c0bf000000bf0000003f0000c03f0000204050"
    "4b03042d0000000000000021008cde33e0ffffffffffffffff05001400792e6e7079010010009000000000000000900000000000"
    "0000934e554d5059010076007b276465736372273a20273c6938272c2027666f727472616e5f6f72646572273a2046616c73652c"
    "20277368617065273a2028322c292c207d2020202020202020202020202020202020202020202020202020202020202020202020"
    "202020202020202020202020202020202020202020202020200a03000000000000000100000000000000504b01022d032d000000"
    "0000000021006d72dba79800000098000000050000000000000000000000800100000000782e6e7079504b01022d032d00000000"
    "00000021008cde33e090000000900000000500000000000000000000008001cf000000792e6e7079504b05060000000002000200"
    "66000000960100000000");
const std::string kDeflated = unhex(
    "504b03042d000000080000002100c28c3917ffffffffffffffff05001400782e6e707901001000f8000000000000005d00000000"
    "0000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc294e058a"
    "17672416a402f91a86063a0ac69a3a0ab50ae4022e060685030c0c07f633303080b03d900dc40a0eb4160700504b03042d000000"
    "080000002100d5a9a1bbffffffffffffffff05001400792e6e707901001000840000000000000048000000000000009bec17ea1b"
    "10c9c850c650ad9e925a9c5ca46ea5a06e9369a4aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a"
    "463a9a3a0ab50a14002e6606460600504b01022d032d000000080000002100c28c39175d000000f8000000050000000000000000"
    "000000800100000000782e6e7079504b01022d032d000000080000002100d5a9a1bb480000008400000005000000000000000000"
    "0000800194000000792e6e7079504b0506000000000200020066000000130100000000");

std::string npz_refusal(const std::string& bytes) {
  return test::message_of([&] { npz_from_bytes(bytes, "x.npz"); });
}

std::string changed(std::string bytes, std::size_t at, const std::string& to) {
  return bytes.replace(at, to.size(), to);
}

std::vector<NamedTensor> two_arrays() {
  return {{"first", tensor({{1, 2, 3}, {4, 5, 6}}, DType::float32)}, {"label/\xC3\xA9", tensor({7, 11})}};
}

std::string zip_of(const std::vector<ZipMember>& members, bool compress) {
  std::string bytes;
  const ZipImage image = make_zip("test", members, compress);
  for (const auto& part : image.parts) bytes += part;
  return bytes;
}

}  // namespace

TEST_CASE("archives of NumPy are read, stored and deflated") {
  const std::vector<float> x = {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f};
  const auto stored = npz_from_bytes(kStored);
  REQUIRE(stored.size() == 2);
  CHECK(stored[0].name == "x");
  CHECK(stored[0].tensor.to_vector<float>() == x);
  CHECK(stored[1].name == "y");
  CHECK(stored[1].tensor.to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 1});
  const auto deflated = npz_from_bytes(kDeflated);
  REQUIRE(deflated.size() == 2);
  CHECK(deflated[0].tensor.shape() == Shape{10, 3});
  CHECK(std::vector<float>(deflated[0].tensor.data<float>(), deflated[0].tensor.data<float>() + 6) == x);
  CHECK(deflated[1].tensor.to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 1});
}

TEST_CASE("a saved archive is loaded with the same arrays, and is the same every time") {
  const TempFolder folder;
  for (const bool compress : {false, true}) {
    const std::string path = folder / "x.npz";
    save_npz(path, two_arrays(), compress);
    const auto read = load_npz(path);
    REQUIRE(read.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(read[i].name == two_arrays()[i].name);
      CHECK(npy_to_bytes(read[i].tensor) == npy_to_bytes(two_arrays()[i].tensor));
    }
    CHECK(slurp(path) == npz_to_bytes(two_arrays(), compress));
    CHECK(load_npz(path, "first").numel() == 6);
    CHECK(test::message_of([&] { load_npz(path, "second"); }) ==
          path + ": no such array: expected one of first, label/\xC3\xA9, got second");
  }
  CHECK(npz_to_bytes(two_arrays(), true).size() < npz_to_bytes(two_arrays(), false).size());
  CHECK(npz_from_bytes(npz_to_bytes({})).empty());
  CHECK(test::message_of([] { npz_to_bytes({{"a", tensor(1)}, {"a", tensor(2)}}); }) == "save_npz: duplicate name: a");
  CHECK(test::message_of([] { npz_to_bytes({{"a", Tensor()}}); }) == "save_npz: tensor is undefined: a");
  CHECK(test::message_of([] { npz_to_bytes({{"\xFF", tensor(2)}}); }) == "save_npz: name is not UTF-8: \xFF");
}

TEST_CASE("an archive that is cut, padded or has one bit changed is refused or reads the same") {
  for (const auto& whole : {kStored, kDeflated}) {
    const auto expected = npz_to_bytes(npz_from_bytes(whole));
    for (std::size_t size = 0; size < whole.size(); ++size)
      CHECK_THROWS_AS(npz_from_bytes(whole.substr(0, size)), Error);
    CHECK_THROWS_AS(npz_from_bytes(whole + '\0'), Error);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string bytes = whole;
      bytes[bit / 8] = char(bytes[bit / 8] ^ (1 << bit % 8));
      CAPTURE(bit / 8, bit % 8);
      // Dates, versions and attributes have no meaning here. Everything else is refused.
      std::string got = expected;
      try {
        got = npz_to_bytes(npz_from_bytes(bytes));
      } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::format);
      }
      CHECK(got == expected);
    }
  }
}

TEST_CASE("what is not an archive of arrays is refused in one sentence") {
  CHECK(npz_refusal("") == "x.npz: not a whole zip archive: its end record is missing");
  CHECK(npz_refusal(kStored.substr(0, 400)) == "x.npz: not a whole zip archive: its end record is missing");
  CHECK(npz_refusal(zip_of({{"notes.txt", {"hello"}}}, false)) ==
        "x.npz: entry is not an array: expected a name ending in .npy, got notes.txt");
  CHECK(npz_refusal(zip_of({{"a.npy", {"hello, world"}}}, true)) ==
        "x.npz: array a: not an NPY file: its first bytes differ");
  CHECK(npz_refusal(zip_of({{"a.npy", {"x"}}, {"a.npy", {"y"}}}, false)) == "x.npz: entry a.npy: duplicate name");
}

TEST_CASE("what Taper does not read of the zip format is refused by its name") {
  const std::string whole = zip_of({{"a.npy", {"0123456789"}}}, false);
  const std::size_t central = 30 + 5 + 10, end = central + 46 + 5;
  REQUIRE(whole.size() == end + 22);
  const auto both = [&](std::size_t field, const std::string& to) {
    return changed(changed(whole, 4 + field, to), central + 6 + field, to);
  };
  const std::string zip64 = "x.npz: zip64 archives are not read; save the arrays in parts below 4 GiB";
  CHECK(npz_refusal(changed(whole, central + 20, "\xFF\xFF\xFF\xFF")) == zip64);
  CHECK(npz_refusal(changed(whole, end + 16, "\xFF\xFF\xFF\xFF")) == zip64);
  CHECK(npz_refusal(changed(whole, end + 8, "\xFF\xFF\xFF\xFF")) == zip64);
  CHECK(npz_refusal(both(2, std::string("\x01\0", 2))) == "x.npz: entry a.npy: encrypted entries are not read");
  CHECK(npz_refusal(both(4, std::string("\x0E\0", 2))) ==
        "x.npz: entry a.npy: compression is not read: expected 0 (stored) or 8 (deflated), got 14");
  CHECK(npz_refusal(changed(whole, end + 4, "\x01")) == "x.npz: archives in several parts are not read");
}

TEST_CASE("an archive that contradicts itself is refused") {
  const std::string whole = zip_of({{"a.npy", {"0123456789"}}, {"b.npy", {"abc"}}}, false);
  const std::size_t second = 45, central = second + 38, central2 = central + 51, end = central2 + 51;
  REQUIRE(whole.size() == end + 22);
  CHECK(npz_refusal(changed(whole, 30, "c")) ==
        "x.npz: entry a.npy: its header differs from the directory of the archive");
  CHECK(npz_refusal(changed(whole, 0, "Q")) == "x.npz: entry a.npy: its header is damaged");
  CHECK(npz_refusal(changed(whole, central + 24, "\x0B")) ==
        "x.npz: entry a.npy: sizes of a stored entry differ: expected 10, got 11");
  CHECK(npz_refusal(changed(whole, central2 + 42, "\x7F")) ==
        "x.npz: entry b.npy: its header lies outside the archive");
  CHECK(npz_refusal(changed(whole, 40, "X")) ==
        "x.npz: entry a.npy: content is damaged: expected checksum a684c7c6, got c726743a");
  CHECK(npz_refusal(changed(whole, end + 10, "\x03").replace(end + 8, 1, "\x03")) ==
        "x.npz: the directory of the archive is damaged");
  CHECK(npz_refusal(changed(whole, end + 16, "\x01")) ==
        "x.npz: the directory is not where the end of the archive says: expected to end at 185, got 103");
  // An entry inside the data of another, as in archives that unpack to thousands of times their size.
  const std::string inner = zip_of({{"b.npy", {"0123456789"}}}, false), local = inner.substr(0, 45);
  std::string nested = zip_of({{"a.npy", {local}}}, false);
  nested.insert(35 + 45 + 51, changed(inner.substr(45, 51), 42, "\x23"));
  nested = changed(nested, 35 + 45 + 2 * 51 + 8, std::string("\x02\0\x02\0\x66\0\0\0", 8));
  CHECK(npz_refusal(nested) == "x.npz: entry b.npy: it overlaps another entry");
}

TEST_CASE("an entry whose size is a lie is refused before memory is taken for it", "[fault-112]") {
  const std::string zeros_text(1 << 16, '\0');
  const std::string whole = zip_of({{"a.npy", {zeros_text}}}, true);
  const std::uint32_t packed = std::uint32_t(whole.size() - 35 - 51 - 22);
  const auto claiming = [&](const std::string& size) {
    return changed(changed(whole, 22, size), 35 + packed + 24, size);
  };
  std::string sentence;
  const auto growth = peak_growth([&] { sentence = npz_refusal(claiming(std::string("\0\0\0\xFE", 4))); });
  CHECK(sentence == "x.npz: entry a.npy: content is shorter than declared");
  if (growth) CHECK(*growth < (1 << 20));
  CHECK(npz_refusal(claiming(std::string("\x10\0\0\0", 4))) == "x.npz: entry a.npy: content is longer than declared");
  CHECK(npz_refusal(changed(whole, 36, "\xFF\xFF\xFF")) == "x.npz: entry a.npy: compressed data is damaged");
}
