#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace taper::io {

/// CRC-32 as in zlib and zip; `crc` is that of the bytes before, so that parts can be joined.
std::uint32_t crc32(std::string_view bytes, std::uint32_t crc = 0);

/// Eight lower-case hexadecimal digits.
std::string hex(std::uint32_t crc);

/// What tells one data file from another: `<size in bytes>-<crc32>`. Errors: as `ByteSource`.
std::string fingerprint(const std::string& path);

}  // namespace taper::io
