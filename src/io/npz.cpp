#include <algorithm>

#include "base/fail.hpp"
#include "base/utf8.hpp"
#include "io/byte_source.hpp"
#include "io/elements.hpp"
#include "io/npy.hpp"
#include "io/printable.hpp"
#include "io/safe_file.hpp"
#include "io/zip.hpp"
#include "taper/io.hpp"

namespace taper::io {

namespace {

constexpr std::string_view kEnding = ".npy";

std::string_view array_name(const std::string& where, const ZipArchive::Entry& entry) {
  if (!entry.name.ends_with(kEnding))
    fail(ErrorKind::format, where, ": entry is not an array: expected a name ending in .npy, got ",
         printable(entry.name));
  return entry.name.substr(0, entry.name.size() - kEnding.size());
}

Tensor read_entry(const ByteSource& source, const ZipArchive& archive, const ZipArchive::Entry& entry) {
  const auto reader = archive.open(entry);
  return read_npy(*reader, cat(source.name(), ": array ", printable(array_name(source.name(), entry))));
}

std::vector<NamedTensor> read_all(const ByteSource& source) {
  const ZipArchive archive(source);
  for (const auto& entry : archive.entries()) array_name(source.name(), entry);
  std::vector<NamedTensor> tensors;
  for (const auto& entry : archive.entries())
    tensors.push_back({std::string(array_name(source.name(), entry)), read_entry(source, archive, entry)});
  return tensors;
}

/// Calls `write` with the parts of the archive.
template <class Write>
auto write_parts(const std::vector<NamedTensor>& tensors, bool compress, Write write) {
  const std::string where = "save_npz";
  std::vector<std::string> names, headers;
  for (const auto& [name, tensor] : tensors) {
    if (find_invalid_utf8(name) != std::string_view::npos)
      fail(ErrorKind::config, where, ": name is not UTF-8: ", printable(name));
    if (!tensor.defined()) fail(ErrorKind::config, where, ": tensor is undefined: ", printable(name));
    names.push_back(name);
    headers.push_back(npy_header(tensor));
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail(ErrorKind::config, where, ": duplicate name: ", printable(*twice));
  std::vector<ZipMember> members;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    members.push_back({cat(tensors[i].name, kEnding), {headers[i], bytes_of(tensors[i].tensor)}});
  const ZipImage image = make_zip(where, members, compress);
  return write(image.parts);
}

}  // namespace

std::vector<NamedTensor> load_npz(const std::string& path) { return read_all(ByteSource(path)); }

Tensor load_npz(const std::string& path, std::string_view name) {
  const ByteSource source(path);
  const ZipArchive archive(source);
  std::string names;
  for (const auto& entry : archive.entries()) {
    const std::string_view array = array_name(path, entry);
    if (array == name) return read_entry(source, archive, entry);
    if (names.size() < 200) names += cat(names.empty() ? "" : ", ", printable(array));
  }
  fail(ErrorKind::format, path, ": no such array: expected one of ", names.empty() ? "none" : names, ", got ",
       printable(name));
}

std::vector<NamedTensor> npz_from_bytes(std::string_view bytes, const std::string& name) {
  return read_all(ByteSource(name, bytes));
}

void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors, bool compress) {
  write_parts(tensors, compress, [&](const auto& parts) { write_file(path, parts); });
}

std::string npz_to_bytes(const std::vector<NamedTensor>& tensors, bool compress) {
  return write_parts(tensors, compress, [](const auto& parts) {
    std::string bytes;
    for (const auto& part : parts) bytes += part;
    return bytes;
  });
}

}  // namespace taper::io
