#include <algorithm>

#include "base/fail.hpp"
#include "io/byte_source.hpp"
#include "io/npy.hpp"
#include "taper/io.hpp"

namespace taper::io {

namespace {

std::string first_bytes(const std::string& path) {
  const ByteSource source(path);
  return source.read(0, std::size_t(std::min<std::int64_t>(source.size(), 8)));
}

}  // namespace

std::vector<NamedTensor> load_arrays(const std::string& path, const CsvOptions& csv) {
  const std::string start = first_bytes(path);
  if (start.starts_with(kNpyMagic)) return {{"input", load_npy(path)}};
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return load_npz(path);
  if (path.ends_with(".safetensors")) return load_safetensors(path).tensors;
  if (path.ends_with(".csv") || path.ends_with(".tsv") || path.ends_with(".txt")) {
    const CsvTable table = load_csv(path, csv);
    std::vector<NamedTensor> tensors = {{"input", table.inputs}};
    if (table.targets.defined()) tensors.push_back({"target", table.targets});
    return tensors;
  }
  fail(ErrorKind::format, path, ": kind of file is not known: expected .npy, .npz, .safetensors, .csv, .tsv or .txt");
}

}  // namespace taper::io
