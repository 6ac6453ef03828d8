#include <unistd.h>

#include <cmath>
#include <string_view>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "base/nearest.hpp"
#include "io/checksum.hpp"
#include "taper/creation.hpp"
#include "taper/data.hpp"
#include "taper/io.hpp"
#include "taper/ops.hpp"

namespace taper::data {

namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool is_npy(const SourceOptions& options) {
  return options.format == Format::npy || (options.format == Format::automatic && options.path.ends_with(".npy"));
}

/// A file the config names: in the working directory, or else in the config's folder.
std::string resolved(const std::string& path, const std::string& base_directory) {
  if (path.starts_with('/') || base_directory.empty() || exists(path)) return path;
  const std::string beside = base_directory + "/" + path;
  return exists(beside) ? beside : path;
}

std::string targets_file(const SourceOptions& options) { return resolved(options.targets, options.base_directory); }

bool is_table(const std::string& path) {
  return path.ends_with(".csv") || path.ends_with(".tsv") || path.ends_with(".txt");
}

/// "3 at [2, 5]": the sample and the position in it of element `i`.
std::string place_of(const Shape& shape, std::int64_t i) {
  const std::int64_t inner = shape.numel() / shape[0];
  std::string position;
  std::int64_t rest = i % inner, volume = inner;
  for (int d = 1; d < shape.rank(); ++d) {
    volume /= shape[d];
    position += cat(d > 1 ? ", " : "", rest / volume);
    rest %= volume;
  }
  return cat(i / inner, shape.rank() > 1 ? cat(" at [", position, "]") : "");
}

template <class T>
Tensor converted_to_float(const std::string& where, const char* what, const Tensor& x) {
  Tensor out = empty(x.shape());
  const T* from = x.data<T>();
  float* to = out.data<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const double value = double(from[i]);
    if (!(std::fabs(value) <= 3.4028234663852886e38)) [[unlikely]]
      fail(ErrorKind::format, where, ": ", what, " of sample ", place_of(x.shape(), i),
           ": expected a finite number that float32 can hold, got ", value);
    to[i] = float(value);
  }
  return out;
}

Tensor as_float(const std::string& where, const char* what, const Tensor& x) {
  switch (x.dtype()) {
    case DType::float32:
      return converted_to_float<float>(where, what, x);
    case DType::float64:
      return converted_to_float<double>(where, what, x);
    case DType::int64:
      return converted_to_float<std::int64_t>(where, what, x);
  }
  return {};
}

/// Class indices, given as integers or as floating numbers without a fraction.
template <class T>
Tensor converted_to_classes(const std::string& where, const Tensor& x) {
  Tensor out = empty(x.shape(), DType::int64);
  const T* from = x.data<T>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const T value = from[i];
    if (!(value >= T(0) && value < T(kMaxClasses) && T(std::int64_t(value)) == value)) [[unlikely]]
      fail(ErrorKind::format, where, ": target of sample ", i, ": expected a class from 0 to ", kMaxClasses - 1,
           ", got ", value);
    out.data<std::int64_t>()[i] = std::int64_t(value);
  }
  return out;
}

Tensor as_classes(const std::string& where, const Tensor& x) {
  if (x.dim() != 1) fail(ErrorKind::shape, where, ": targets: expected one class a sample, shape [N], got ", x.shape());
  if (x.dtype() == DType::float32) return converted_to_classes<float>(where, x);
  if (x.dtype() == DType::float64) return converted_to_classes<double>(where, x);
  return converted_to_classes<std::int64_t>(where, x);
}

const Tensor& find_array(const std::string& path, const std::vector<NamedTensor>& arrays, const std::string& name) {
  std::vector<std::string_view> names;
  std::string listed;
  for (const auto& array : arrays) {
    if (array.name == name) return array.tensor;
    names.push_back(array.name);
    listed += cat(listed.empty() ? "" : ", ", array.name);
  }
  fail(ErrorKind::config, path, ": no array ", name, ": expected one of ", listed, did_you_mean(name, names));
}

Dataset load_table(const std::string& path, const SourceOptions& options, bool expect_classes,
                   const std::vector<std::string>& labels) {
  const io::CsvTable table = io::load_csv(path, {.delimiter = options.delimiter,
                                                 .header = options.header,
                                                 .inputs = options.inputs,
                                                 .target = options.targets,
                                                 .target_is_class = expect_classes,
                                                 .labels = labels,
                                                 .fill = options.fill});
  Dataset dataset = make_dataset(path, table.inputs, table.targets, expect_classes);
  dataset.labels = table.labels;
  return dataset;
}

Dataset load_named(const std::string& path, const std::vector<NamedTensor>& arrays, const SourceOptions& options,
                   bool expect_classes) {
  if (options.inputs.size() > 1)
    fail(ErrorKind::config, path, ": inputs: expected the name of one array, got ", options.inputs.size());
  const std::string name = options.inputs.empty() ? "x" : options.inputs[0];
  const Tensor& inputs = find_array(path, arrays, name);
  return make_dataset(path, inputs, find_array(path, arrays, options.targets), expect_classes);
}

/// NPY holds one array a file, so the targets are a file of their own.
Dataset load_pair(const std::string& path, const SourceOptions& options, bool expect_classes) {
  return make_dataset(path, io::load_npy(path), io::load_npy(targets_file(options)), expect_classes);
}

Dataset load_from(const std::string& path, const SourceOptions& options, bool expect_classes,
                  const std::vector<std::string>& labels) {
  switch (options.format) {
    case Format::npz:
      return load_named(path, io::load_npz(path), options, expect_classes);
    case Format::safetensors:
      return load_named(path, io::load_safetensors(path).tensors, options, expect_classes);
    case Format::npy:
      return load_pair(path, options, expect_classes);
    case Format::csv:
      return load_table(path, options, expect_classes, labels);
    case Format::automatic:
      break;
  }
  if (is_npy(options)) return load_pair(path, options, expect_classes);
  if (is_table(path)) return load_table(path, options, expect_classes, labels);
  return load_named(path, io::load_arrays(path), options, expect_classes);
}

}  // namespace

std::string resolve_path(const SourceOptions& options) { return resolved(options.path, options.base_directory); }

std::string fingerprint(const SourceOptions& options) {
  const std::string inputs = io::fingerprint(resolve_path(options));
  return is_npy(options) ? inputs + "+" + io::fingerprint(targets_file(options)) : inputs;
}

Dataset load_dataset(const SourceOptions& options, bool expect_classes, const std::vector<std::string>& labels) {
  const std::string path = resolve_path(options);
  Dataset dataset = load_from(path, options, expect_classes, labels);
  dataset.fingerprint = fingerprint(options);
  return dataset;
}

Dataset make_dataset(const std::string& where, const Tensor& inputs, const Tensor& targets, bool expect_classes) {
  if (inputs.dim() < 2)
    fail(ErrorKind::shape, where, ": inputs: expected samples with features, [N, ...], got ", inputs.shape());
  if (targets.dim() < 1 || targets.size(0) != inputs.size(0))
    fail(ErrorKind::shape, where, ": inputs and targets differ in their number of samples: expected ", inputs.size(0),
         " targets, got ", targets.shape());
  if (inputs.numel() == 0)
    fail(ErrorKind::shape, where, ": inputs are empty: expected at least one sample, got ", inputs.shape());
  Dataset dataset;
  dataset.inputs = as_float(where, "input", inputs);
  dataset.targets = expect_classes ? as_classes(where, targets) : as_float(where, "target", targets);
  return dataset;
}

Dataset Dataset::subset(const Tensor& index) const {
  Dataset part = *this;
  part.inputs = index_select(inputs, 0, index);
  part.targets = index_select(targets, 0, index);
  return part;
}

}  // namespace taper::data
