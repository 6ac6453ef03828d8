#include "io/checksum.hpp"

#include <zlib.h>

#include <algorithm>

#include "base/fail.hpp"
#include "io/byte_source.hpp"

namespace taper::io {

std::uint32_t crc32(std::string_view bytes, std::uint32_t crc) {
  // zlib takes a null pointer as a request for the start value.
  if (bytes.empty()) return crc;
  return std::uint32_t(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string hex(std::uint32_t crc) {
  std::string digits(8, '0');
  for (std::size_t i = 0; i < 8; ++i) digits[i] = "0123456789abcdef"[(crc >> (28 - 4 * i)) & 15];
  return digits;
}

std::string fingerprint(const std::string& path) {
  const ByteSource source(path);
  SourceReader reader(source);
  char chunk[1 << 16];
  std::uint32_t crc = 0;
  while (reader.remaining() > 0) {
    const auto n = std::size_t(std::min<std::int64_t>(reader.remaining(), sizeof chunk));
    reader.read(chunk, n);
    crc = crc32({chunk, n}, crc);
  }
  return cat(source.size(), '-', hex(crc));
}

}  // namespace taper::io
