#include "io/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>

#include "base/fail.hpp"
#include "base/utf8.hpp"
#include "io/checksum.hpp"
#include "io/printable.hpp"

namespace taper::io {

namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64Locator = 0x07064b50;
constexpr std::int64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kLocatorSize = 20, kMaxComment = 65535;
constexpr std::uint16_t kStored = 0, kDeflated = 8;
constexpr std::uint16_t kEncryptedFlags = 1 | 1 << 6 | 1 << 13, kSizesFollow = 1 << 3;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;

std::uint16_t get16(std::string_view bytes, std::size_t at) {
  return std::uint16_t(static_cast<unsigned char>(bytes[at]) | static_cast<unsigned char>(bytes[at + 1]) << 8);
}
std::uint32_t get32(std::string_view bytes, std::size_t at) {
  return get16(bytes, at) | std::uint32_t{get16(bytes, at + 2)} << 16;
}
std::uint64_t get64(std::string_view bytes, std::size_t at) {
  return get32(bytes, at) | std::uint64_t{get32(bytes, at + 4)} << 32;
}

[[noreturn]] void refuse_zip64(const std::string& name) {
  fail(ErrorKind::format, name, ": zip64 archives are not read; save the arrays in parts below 4 GiB");
}

/// The sizes of a local header, which has them in an extra field when it was written before they were known.
bool sizes_agree(std::string_view header, std::string_view extra, std::uint32_t packed_size, std::uint32_t size) {
  if (get32(header, 18) != kIn64 || get32(header, 22) != kIn64)
    return get32(header, 18) == packed_size && get32(header, 22) == size;
  while (extra.size() >= 4) {
    const std::size_t length = get16(extra, 2);
    if (length > extra.size() - 4) return false;
    if (get16(extra, 0) == 1 && length >= 16) return get64(extra, 4) == size && get64(extra, 12) == packed_size;
    extra.remove_prefix(4 + length);
  }
  return false;
}

class InflateReader final : public ByteReader {
 public:
  InflateReader(const ByteSource& source, const ZipArchive::Entry& entry, std::string where)
      : ByteReader(entry.size), packed_(source, entry.data_at, entry.packed_size), where_(std::move(where)) {
    // Negative window bits: no zlib header around the data.
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~InflateReader() override { ::inflateEnd(&stream_); }

  void read(void* out, std::size_t n) override {
    remaining_ -= std::int64_t(n);
    auto* to = static_cast<Bytef*>(out);
    while (n > 0) {
      const std::size_t ask = std::min<std::size_t>(n, 1u << 30), got = inflate(to, ask);
      if (got == 0) fail(ErrorKind::format, where_, ": content is shorter than declared");
      to += got;
      n -= got;
    }
  }

  /// After the last byte: the compressed data must end there as well.
  void finish() {
    Bytef extra;
    if (inflate(&extra, 1) != 0 || !ended_) fail(ErrorKind::format, where_, ": content is longer than declared");
    if (stream_.avail_in != 0 || packed_.remaining() != 0)
      fail(ErrorKind::format, where_, ": bytes after the compressed data");
  }

 private:
  /// Up to `n` bytes; fewer only at the end.
  std::size_t inflate(Bytef* out, std::size_t n) {
    stream_.next_out = out;
    stream_.avail_out = uInt(n);
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0) {
        stream_.avail_in = uInt(std::min<std::int64_t>(packed_.remaining(), sizeof input_));
        packed_.read(input_, stream_.avail_in);
        stream_.next_in = input_;
      }
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      ended_ = status == Z_STREAM_END;
      if (status != Z_OK && !ended_) fail(ErrorKind::format, where_, ": compressed data is damaged");
    }
    return n - stream_.avail_out;
  }

  SourceReader packed_;
  std::string where_;
  z_stream stream_{};
  Bytef input_[1 << 14];
  bool ended_ = false;
};

}  // namespace

ZipArchive::ZipArchive(const ByteSource& source) : source_(source) {
  find_directory();
  for (Entry& entry : entries_) check_header(entry);
  check_apart();
}

std::string ZipArchive::where(const Entry& entry) const {
  return cat(source_.name(), ": entry ", printable(entry.name));
}

void ZipArchive::find_directory() {
  const std::string& name = source_.name();
  const std::int64_t tail_size = std::min(source_.size(), kEndSize + kMaxComment + kLocatorSize);
  const std::string tail = source_.read(source_.size() - tail_size, std::size_t(tail_size));
  for (std::int64_t at = tail_size - kEndSize; at >= 0; --at) {
    const std::string_view record = std::string_view(tail).substr(std::size_t(at));
    if (get32(record, 0) != kEnd || kEndSize + get16(record, 20) != std::int64_t(record.size())) continue;
    const bool has_locator = at >= kLocatorSize && get32(tail, std::size_t(at - kLocatorSize)) == kEnd64Locator;
    if (has_locator || get16(record, 10) == 0xFFFF || get32(record, 12) == kIn64 || get32(record, 16) == kIn64)
      refuse_zip64(name);
    if (get16(record, 4) != 0 || get16(record, 6) != 0 || get16(record, 8) != get16(record, 10))
      fail(ErrorKind::format, name, ": archives in several parts are not read");
    const std::int64_t end_at = source_.size() - tail_size + at, size = get32(record, 12);
    directory_at_ = get32(record, 16);
    if (directory_at_ + size != end_at)
      fail(ErrorKind::format, name, ": the directory is not where the end of the archive says: expected to end at ",
           end_at, ", got ", directory_at_ + size);
    directory_ = source_.read(directory_at_, std::size_t(size));
    return read_directory(end_at, get16(record, 10));
  }
  fail(ErrorKind::format, name, ": not a whole zip archive: its end record is missing");
}

void ZipArchive::read_directory(std::int64_t end_at, std::int64_t entries) {
  const auto cut = [&] { fail(ErrorKind::format, source_.name(), ": the directory of the archive is damaged"); };
  std::string_view rest = directory_;
  // Each entry takes more of the directory than of this table, so a false count cannot make it large.
  if (entries > std::int64_t(rest.size()) / kCentralSize) cut();
  entries_.reserve(std::size_t(entries));
  for (std::int64_t i = 0; i < entries; ++i) {
    if (std::int64_t(rest.size()) < kCentralSize || get32(rest, 0) != kCentral) cut();
    const std::size_t name_size = get16(rest, 28),
                      total = std::size_t(kCentralSize) + name_size + get16(rest, 30) + get16(rest, 32);
    if (total > rest.size()) cut();
    Entry entry{rest.substr(std::size_t(kCentralSize), name_size),
                get32(rest, 16),
                get32(rest, 20),
                get32(rest, 24),
                get32(rest, 42),
                0,
                get16(rest, 8),
                get16(rest, 10)};
    if (find_invalid_utf8(entry.name) != std::string_view::npos)
      fail(ErrorKind::format, source_.name(), ": the name of an entry is not UTF-8");
    if (entry.packed_size == kIn64 || entry.size == kIn64 || entry.header_at == kIn64) refuse_zip64(source_.name());
    if (entry.flags & kEncryptedFlags) fail(ErrorKind::format, where(entry), ": encrypted entries are not read");
    if (entry.method != kStored && entry.method != kDeflated)
      fail(ErrorKind::format, where(entry), ": compression is not read: expected 0 (stored) or 8 (deflated), got ",
           entry.method);
    if (entry.method == kStored && entry.packed_size != entry.size)
      fail(ErrorKind::format, where(entry), ": sizes of a stored entry differ: expected ", entry.packed_size, ", got ",
           entry.size);
    entries_.push_back(entry);
    rest.remove_prefix(total);
  }
  if (!rest.empty() || directory_at_ + std::int64_t(directory_.size()) != end_at) cut();
}

void ZipArchive::check_header(Entry& entry) const {
  const auto refuse = [&](const char* what) { fail(ErrorKind::format, where(entry), ": ", what); };
  if (entry.header_at + kLocalSize > directory_at_) refuse("its header lies outside the archive");
  const std::string header = source_.read(entry.header_at, std::size_t(kLocalSize));
  const std::size_t name_size = get16(header, 26), extra_size = get16(header, 28);
  const std::int64_t data_at = entry.header_at + kLocalSize + std::int64_t(name_size + extra_size);
  if (get32(header, 0) != kLocal) refuse("its header is damaged");
  if (data_at + std::int64_t{entry.packed_size} > directory_at_) refuse("its data lies outside the archive");
  const std::string names = source_.read(entry.header_at + kLocalSize, name_size + extra_size);
  const std::string_view extra = std::string_view(names).substr(name_size);
  const bool follows = entry.flags & kSizesFollow;
  const bool same_sizes =
      follows || (get32(header, 14) == entry.crc && sizes_agree(header, extra, entry.packed_size, entry.size));
  if (std::string_view(names).substr(0, name_size) != entry.name || get16(header, 6) != entry.flags ||
      get16(header, 8) != entry.method || !same_sizes)
    refuse("its header differs from the directory of the archive");
  entry.data_at = std::uint32_t(data_at);
}

void ZipArchive::check_apart() const {
  std::vector<const Entry*> order;
  order.reserve(entries_.size());
  for (const Entry& entry : entries_) order.push_back(&entry);
  const auto sort_by = [&](bool (*before)(const Entry*, const Entry*)) {
    std::sort(order.begin(), order.end(), before);
  };
  sort_by([](const Entry* a, const Entry* b) { return a->header_at < b->header_at; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (std::uint64_t{order[i - 1]->data_at} + order[i - 1]->packed_size > order[i]->header_at)
      fail(ErrorKind::format, where(*order[i]), ": it overlaps another entry");
  sort_by([](const Entry* a, const Entry* b) { return a->name < b->name; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->name == order[i]->name) fail(ErrorKind::format, where(*order[i]), ": duplicate name");
}

std::unique_ptr<ByteReader> ZipArchive::open(const Entry& entry) const {
  const auto make = [&]() -> std::unique_ptr<ByteReader> {
    if (entry.method == kDeflated) return std::make_unique<InflateReader>(source_, entry, where(entry));
    return std::make_unique<SourceReader>(source_, entry.data_at, entry.size);
  };
  const auto trial = make();
  char chunk[1 << 14];
  std::uint32_t crc = 0;
  while (trial->remaining() > 0) {
    const auto n = std::size_t(std::min<std::int64_t>(trial->remaining(), sizeof chunk));
    trial->read(chunk, n);
    crc = crc32({chunk, n}, crc);
  }
  if (auto* inflating = dynamic_cast<InflateReader*>(trial.get())) inflating->finish();
  if (crc != entry.crc)
    fail(ErrorKind::format, where(entry), ": content is damaged: expected checksum ", hex(entry.crc), ", got ",
         hex(crc));
  return make();
}

namespace {

void put16(std::string& out, std::uint32_t value) { out += {char(value & 255), char((value >> 8) & 255)}; }
void put32(std::string& out, std::uint32_t value) {
  put16(out, value & 0xFFFF);
  put16(out, value >> 16);
}

std::string deflate(const std::vector<std::string_view>& parts) {
  z_stream stream{};
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string packed;
  char chunk[1 << 15];
  const auto run = [&](int flush) {
    do {
      stream.next_out = reinterpret_cast<Bytef*>(chunk);
      stream.avail_out = sizeof chunk;
      ::deflate(&stream, flush);
      packed.append(chunk, sizeof chunk - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const std::size_t n = std::min<std::size_t>(part.size(), 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
      stream.avail_in = uInt(n);
      run(Z_NO_FLUSH);
      part.remove_prefix(n);
    }
  }
  run(Z_FINISH);
  ::deflateEnd(&stream);
  return packed;
}

/// The fields a local header and the directory have in common; the date is the first of 1980.
std::string common_fields(const ZipMember& member, bool compress, std::uint32_t crc, std::size_t packed,
                          std::size_t size) {
  const bool is_ascii =
      std::all_of(member.name.begin(), member.name.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  std::string fields;
  put16(fields, 20);
  put16(fields, is_ascii ? 0 : 1 << 11);
  put16(fields, compress ? kDeflated : kStored);
  put32(fields, 0x00210000);
  put32(fields, crc);
  put32(fields, std::uint32_t(packed));
  put32(fields, std::uint32_t(size));
  put16(fields, std::uint32_t(member.name.size()));
  put16(fields, 0);
  return fields;
}

}  // namespace

ZipImage make_zip(const std::string& where, const std::vector<ZipMember>& members, bool compress) {
  ZipImage image;
  // Views into the owned strings must not move.
  image.owned.reserve(2 * members.size() + 1);
  const auto own = [&](std::string bytes) { return std::string_view(image.owned.emplace_back(std::move(bytes))); };
  const auto fits = [&](std::uint64_t value, std::uint64_t limit, const char* what) {
    if (value >= limit)
      fail(ErrorKind::config, where, ": too ", what, " for an archive: expected less than ", limit, ", got ", value);
  };
  fits(members.size(), 0xFFFF, "many arrays");
  std::string directory;
  std::uint64_t at = 0;
  for (const ZipMember& member : members) {
    fits(member.name.size(), 0xFFFF, "long a name");
    std::uint32_t crc = 0;
    std::uint64_t size = 0;
    for (const auto& part : member.parts) {
      crc = crc32(part, crc);
      size += part.size();
    }
    fits(size, kIn64, "many bytes");
    const std::vector<std::string_view> content =
        compress ? std::vector<std::string_view>{own(deflate(member.parts))} : member.parts;
    std::uint64_t packed = 0;
    for (const auto& part : content) packed += part.size();
    fits(at + packed, kIn64, "many bytes");

    const std::string fields = common_fields(member, compress, crc, packed, size);
    put32(directory, kCentral);
    put16(directory, 3 << 8 | 20);
    directory += fields;
    directory.append(6, '\0');
    put32(directory, 0600u << 16);
    put32(directory, std::uint32_t(at));
    directory += member.name;

    std::string header;
    put32(header, kLocal);
    header += fields + member.name;
    at += header.size() + packed;
    image.parts.push_back(own(std::move(header)));
    image.parts.insert(image.parts.end(), content.begin(), content.end());
  }
  fits(at + directory.size(), kIn64, "many bytes");
  const std::size_t directory_size = directory.size();
  put32(directory, kEnd);
  put32(directory, 0);
  put16(directory, std::uint32_t(members.size()));
  put16(directory, std::uint32_t(members.size()));
  put32(directory, std::uint32_t(directory_size));
  put32(directory, std::uint32_t(at));
  put16(directory, 0);
  image.parts.push_back(own(std::move(directory)));
  return image;
}

}  // namespace taper::io
