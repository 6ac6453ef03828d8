#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/fail.hpp"
#include "base/utf8.hpp"
#include "io/byte_source.hpp"
#include "io/checksum.hpp"
#include "io/elements.hpp"
#include "io/printable.hpp"
#include "io/safe_file.hpp"
#include "io/safetensors_header.hpp"
#include "taper/io.hpp"

namespace taper::io {

namespace {

// The checksum of the header stands first in it, so that its place is known before anything is parsed. It covers the
// header with zeros in that place; the checksums of the tensors, under `kTensorSums`, are thereby covered as well.
constexpr std::string_view kHeaderSum = "taper.header_crc32", kTensorSums = "taper.crc32";
constexpr std::string_view kOpening = R"({"__metadata__":{"taper.header_crc32":")", kZeros = "00000000";

std::string header_sum(std::string_view header) {
  const std::uint32_t opening = crc32(kZeros, crc32(header.substr(0, kOpening.size())));
  return hex(crc32(header.substr(kOpening.size() + kZeros.size()), opening));
}

bool has_header_sum(std::string_view header) {
  return header.starts_with(kOpening) && header.size() >= kOpening.size() + kZeros.size();
}

/// The checksums a file brings for its tensors, in the order of its header.
class TensorSums {
 public:
  TensorSums(const std::string& where, SafetensorsHeader& header, bool header_verified)
      : where_(where), parser_(cat(where, ": metadata ", kTensorSums), nullptr, 0) {
    const auto value = find(header, kTensorSums);
    present_ = value.data() != nullptr;
    const bool has_sum = find(header, kHeaderSum).data() != nullptr;
    if (present_ != header_verified || has_sum != header_verified)
      fail(ErrorKind::format, where, ": checksums are incomplete: expected both ", kHeaderSum, " (first) and ",
           kTensorSums, " in the metadata, or neither");
    if (present_) parser_ = HeaderParser(cat(where, ": metadata ", kTensorSums), header.text_of(value), value.size());
  }

  bool present() const { return present_; }

  void check(std::string_view name, std::uint32_t crc) {
    parser_.expect(std::exchange(first_, false) ? '{' : ',');
    const std::string_view listed = parser_.string();
    if (listed != name)
      fail(ErrorKind::format, where_, ": checksums are not in the order of the tensors: expected ", printable(name),
           ", got ", printable(listed));
    parser_.expect(':');
    const std::string_view expected = parser_.string();
    if (expected != hex(crc))
      fail(ErrorKind::format, where_, ": tensor ", printable(name), ": data is damaged: expected checksum ",
           printable(expected), ", got ", hex(crc));
  }

 private:
  static std::string_view find(const SafetensorsHeader& header, std::string_view key) {
    for (const auto& [name, value] : header.metadata())
      if (name == key) return value;
    return {};
  }

  std::string where_;
  HeaderParser parser_;
  bool present_ = false, first_ = true;
};

SafetensorsFile read(const ByteSource& source) {
  const std::string& where = source.name();
  const std::int64_t size = source.size();
  if (size < 10) fail(ErrorKind::format, where, ": file is too short: expected at least 10 bytes, got ", size);
  std::uint64_t length;
  source.read(0, &length, sizeof length);
  const std::int64_t limit = std::min(kMaxHeader, size - 8);
  if (length < 2 || length > std::uint64_t(limit))
    fail(ErrorKind::format, where, ": header length is out of range: expected 2 to ", limit, ", got ", length);

  std::string text = source.read(8, std::size_t(length));
  const bool summed = has_header_sum(text);
  if (summed) {
    const std::string expected = text.substr(kOpening.size(), kZeros.size()), got = header_sum(text);
    if (expected != got)
      fail(ErrorKind::format, where, ": header is damaged: expected checksum ", printable(expected), ", got ", got);
  }
  const std::int64_t data_begin = 8 + std::int64_t(length);
  SafetensorsHeader header(where, std::move(text), size - data_begin);
  TensorSums sums(where, header, summed);

  SafetensorsFile file;
  for (const auto& entry : header.entries()) {
    SourceReader reader(source, data_begin + entry.begin, entry.end - entry.begin);
    std::uint32_t crc = 0;
    file.tensors.push_back({std::string(entry.name), read_elements(reader, entry.type, false, header.shape(entry),
                                                                   where, sums.present() ? &crc : nullptr)});
    if (sums.present()) sums.check(entry.name, crc);
  }
  for (const auto& [key, value] : header.metadata())
    if (key != kHeaderSum && key != kTensorSums) file.metadata.emplace_back(key, value);
  return file;
}

void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view kShort = "\"\\bfnrt", kMeant = "\"\\\b\f\n\r\t";
  out += '"';
  for (const char c : text) {
    const std::size_t kind = kMeant.find(c);
    if (kind != std::string_view::npos) {
      out += '\\';
      out += kShort[kind];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += hex(std::uint32_t(c)).substr(6);
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_pair(std::string& out, std::string_view key, std::string_view value) {
  append_json(out, key);
  out += ':';
  append_json(out, value);
}

[[noreturn]] void refuse(std::string_view what, std::string_view which) {
  fail(ErrorKind::config, "save_safetensors: ", what, ": ", printable(which));
}

void check_text(std::string_view text) {
  if (find_invalid_utf8(text) != std::string_view::npos) refuse("text is not UTF-8", text);
  if (text.find('\0') != std::string_view::npos) refuse("text holds NUL", text);
}

void check_distinct(std::vector<std::string_view> names, const char* what) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse(what, *twice);
}

void check(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  if (tensors.empty() || std::int64_t(tensors.size()) > kMaxTensors)
    fail(ErrorKind::config, "save_safetensors: number of tensors: expected 1 to ", kMaxTensors, ", got ",
         tensors.size());
  // Three entries are Taper's own.
  if (std::int64_t(metadata.size()) > kMaxMetadata - 3)
    fail(ErrorKind::config, "save_safetensors: number of metadata entries: expected at most ", kMaxMetadata - 3,
         ", got ", metadata.size());
  std::vector<std::string_view> names, keys;
  for (const auto& [name, tensor] : tensors) {
    check_text(name);
    if (name == "__metadata__") refuse("name is reserved", name);
    if (!tensor.defined()) refuse("tensor is undefined", name);
    names.push_back(name);
  }
  for (const auto& [key, value] : metadata) {
    check_text(key);
    check_text(value);
    if (key == kHeaderSum || key == kTensorSums) refuse("metadata key is reserved", key);
    keys.push_back(key);
  }
  check_distinct(std::move(names), "duplicate tensor name");
  check_distinct(std::move(keys), "duplicate metadata key");
}

/// By element size, so that everything is aligned, then by name.
bool is_before(const NamedTensor* a, const NamedTensor* b) {
  const auto size_a = size_of(a->tensor.dtype()), size_b = size_of(b->tensor.dtype());
  return size_a != size_b ? size_a > size_b : a->name < b->name;
}

std::vector<const NamedTensor*> in_file_order(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> order;
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), is_before);
  return order;
}

std::string header_metadata(const std::vector<const NamedTensor*>& order, const Metadata& metadata) {
  std::string out(kOpening);
  out += kZeros;
  out += '"';
  const bool has_format =
      std::any_of(metadata.begin(), metadata.end(), [](const auto& m) { return m.first == "format"; });
  if (!has_format) out += R"(,"format":"pt")";
  for (const auto& [key, value] : metadata) {
    out += ',';
    append_pair(out, key, value);
  }
  std::string sums;
  for (const auto* named : order) {
    sums += sums.empty() ? '{' : ',';
    append_pair(sums, named->name, hex(crc32(bytes_of(named->tensor))));
  }
  sums += '}';
  out += ',';
  append_pair(out, kTensorSums, sums);
  return out + '}';
}

/// The first eight bytes and the header.
std::string header_bytes(const std::vector<const NamedTensor*>& order, const Metadata& metadata) {
  std::string header = header_metadata(order, metadata);
  std::int64_t begin = 0;
  for (const auto* named : order) {
    const std::int64_t end = begin + std::int64_t(bytes_of(named->tensor).size());
    header += ',';
    append_json(header, named->name);
    header += cat(R"(:{"dtype":")", safetensors_dtype(stored_as(named->tensor.dtype())), R"(","shape":[)");
    for (int i = 0; i < named->tensor.shape().rank(); ++i) header += cat(i > 0 ? "," : "", named->tensor.shape()[i]);
    header += cat(R"(],"data_offsets":[)", begin, ',', end, "]}");
    begin = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  if (std::int64_t(header.size()) > kMaxHeader)
    fail(ErrorKind::config, "save_safetensors: names and metadata are too long: expected at most ", kMaxHeader,
         " bytes, got ", header.size());
  header.replace(kOpening.size(), kZeros.size(), header_sum(header));
  const std::uint64_t length = header.size();
  char prefix[sizeof length];
  std::memcpy(prefix, &length, sizeof length);
  return std::string(prefix, sizeof prefix) + header;
}

/// Calls `write` with the parts of the file.
template <class Write>
auto write_parts(const std::vector<NamedTensor>& tensors, const Metadata& metadata, Write write) {
  check(tensors, metadata);
  const auto order = in_file_order(tensors);
  const std::string header = header_bytes(order, metadata);
  std::vector<std::string_view> parts = {header};
  for (const auto* named : order) parts.push_back(bytes_of(named->tensor));
  return write(parts);
}

}  // namespace

const Tensor* SafetensorsFile::find(std::string_view name) const {
  for (const auto& named : tensors)
    if (named.name == name) return &named.tensor;
  return nullptr;
}

const std::string* SafetensorsFile::find_metadata(std::string_view key) const {
  for (const auto& [name, value] : metadata)
    if (name == key) return &value;
  return nullptr;
}

SafetensorsFile load_safetensors(const std::string& path) { return read(ByteSource(path)); }

SafetensorsFile safetensors_from_bytes(std::string_view bytes, const std::string& name) {
  return read(ByteSource(name, bytes));
}

void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  save_safetensors(path, tensors, {});
}

void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  write_parts(tensors, metadata, [&](const auto& parts) { write_file(path, parts); });
}

std::string safetensors_to_bytes(const std::vector<NamedTensor>& tensors) { return safetensors_to_bytes(tensors, {}); }

std::string safetensors_to_bytes(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  return write_parts(tensors, metadata, [](const auto& parts) {
    std::string bytes;
    for (const auto& part : parts) bytes += part;
    return bytes;
  });
}

}  // namespace taper::io
