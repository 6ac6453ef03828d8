#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.hpp"

namespace taper::io {

/// The entries of a zip archive, stored or deflated, by its central directory; the headers in front of the data must
/// agree with it, and no two entries may share bytes.
class ZipArchive {
 public:
  struct Entry {
    std::string_view name;
    std::uint32_t crc, packed_size, size;
    std::uint32_t header_at, data_at;
    std::uint16_t flags, method;
  };

  /// `source` must outlive the archive.
  /// Errors: `ErrorKind::format`, also for zip64, encryption, several parts and other kinds of compression.
  explicit ZipArchive(const ByteSource& source);
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }

  /// Reads the content of an entry once to see that it has the size and checksum it claims, without keeping it, and
  /// then returns it to be read: nothing is allocated for a claim that is not true.
  std::unique_ptr<ByteReader> open(const Entry& entry) const;

 private:
  void find_directory();
  void read_directory(std::int64_t end_at, std::int64_t entries);
  void check_header(Entry& entry) const;
  void check_apart() const;
  std::string where(const Entry& entry) const;

  const ByteSource& source_;
  std::string directory_;
  std::int64_t directory_at_ = 0;
  std::vector<Entry> entries_;
};

struct ZipMember {
  std::string name;
  std::vector<std::string_view> parts;  ///< the content, to be joined
};

/// Calls for an archive of these members with fixed dates. The returned strings own the headers and, when compressed,
/// the data; `parts` are the archive's bytes in order.
struct ZipImage {
  std::vector<std::string> owned;
  std::vector<std::string_view> parts;
};
/// Errors: `ErrorKind::config`, `where: ...`, from 4 GiB or 65535 members on.
ZipImage make_zip(const std::string& where, const std::vector<ZipMember>& members, bool compress);

}  // namespace taper::io
