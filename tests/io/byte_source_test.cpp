#include "io/byte_source.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "io/checksum.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/temp_folder.hpp"
#include "taper/error.hpp"

using namespace taper;
using namespace taper::io;

TEST_CASE("a source reads from any position, of a file as of memory") {
  const TempFolder folder;
  const std::string path = folder.write("a", "0123456");
  const ByteSource file(path), memory("memory", "0123456");
  for (const auto* source : {&file, &memory}) {
    CHECK(source->size() == 7);
    CHECK(source->read(2, 3) == "234");
    CHECK(source->read(7, 0).empty());
    SourceReader reader(*source, 1, 5);
    char got[5] = {};
    reader.read(got, 2);
    CHECK(reader.remaining() == 3);
    reader.read(got + 2, 3);
    CHECK(std::string(got, 5) == "12345");
  }
  CHECK(file.name() == path);
  CHECK(read_file(path, 7) == "0123456");
}

TEST_CASE("a file that cannot be read is refused with the system's reason") {
  const TempFolder folder;
  const auto message = [&](const std::string& path) { return test::message_of([&] { read_file(path, 6); }); };
  CHECK(message(folder / "none") == folder / "none: cannot read: No such file or directory");
  CHECK(message(folder.path()) == folder.path() + ": cannot read: Is a directory; give the name of a file");
  CHECK(message(folder.write("a", "0123456")) == folder / "a: file is too large: expected at most 6 bytes, got 7");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(message(folder / "pipe") == folder / "pipe: cannot read: not a regular file");
  if (::geteuid() != 0) {
    const std::string path = folder.write("secret", "x");
    REQUIRE(::chmod(path.c_str(), 0) == 0);
    CHECK(message(path) == path + ": cannot read: Permission denied");
  }
}

TEST_CASE("a file that is cut while it is read gives an error") {
  const TempFolder folder;
  const std::string path = folder.write("a", "0123456");
  const ByteSource source(path);
  REQUIRE(::truncate(path.c_str(), 3) == 0);
  CHECK(test::message_of([&] { source.read(0, 7); }) ==
        path + ": cannot read: the file became shorter while it was read");
}

TEST_CASE("checksums are CRC-32, and a fingerprint holds size and checksum") {
  CHECK(hex(crc32("123456789")) == "cbf43926");
  CHECK(crc32("6789", crc32("12345")) == crc32("123456789"));
  CHECK(crc32("") == 0);
  CHECK(crc32("", 17) == 17);
  const TempFolder folder;
  CHECK(fingerprint(folder.write("a", "123456789")) == "9-cbf43926");
  CHECK(fingerprint(folder.write("b", "")) == "0-00000000");
}
