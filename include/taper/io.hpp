#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

/// Tensors in files. Everything that is read is distrusted: a file that is cut, padded or contradicts itself is an
/// `Error` of `ErrorKind::format` whose sentence starts with the path, before memory is taken for its content; what
/// the operating system refuses is one of `ErrorKind::io`. Files are replaced all or nothing: after a crash a path
/// holds the old content or the new one.
namespace taper::io {

/// Text kept beside the tensors of a safetensors file.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsFile {
  std::vector<NamedTensor> tensors;  ///< in the order of the file's header
  Metadata metadata;                 ///< without the checksums Taper writes

  /// Null when there is none.
  const Tensor* find(std::string_view name) const;
  const std::string* find_metadata(std::string_view key) const;
};

/// Reads F64 as float64, F32, F16 and BF16 as float32, I64, I32, I16, I8, U8 and BOOL as int64. Checksums that Taper
/// wrote are verified. At most 10000 tensors, 4096 metadata entries and rank 8.
SafetensorsFile load_safetensors(const std::string& path);
/// Writes F32, F64 and I64, in an order of their own: by element size, then name. The same tensors and metadata give
/// the same bytes. Adds the metadata `format: "pt"` where there is no other, and checksums of header and tensors.
/// Errors: `ErrorKind::config` for no tensor, equal names, text that is not UTF-8.
void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors);
void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata);

/// The same from and to memory; `name` takes the place of the path in error sentences.
SafetensorsFile safetensors_from_bytes(std::string_view bytes, const std::string& name = "safetensors");
std::string safetensors_to_bytes(const std::vector<NamedTensor>& tensors);
std::string safetensors_to_bytes(const std::vector<NamedTensor>& tensors, const Metadata& metadata);

/// Reads NPY 1 to 3, both orders and byte orders: f8 as float64, f4 and f2 as float32, integers and b1 as int64.
/// Differs from NumPy: u8 above 2^63 - 1 is refused, and so are text, dates, complex numbers, records and objects.
Tensor load_npy(const std::string& path);
/// Writes NPY 1.0, byte for byte as NumPy does.
void save_npy(const std::string& path, const Tensor& tensor);
Tensor npy_from_bytes(std::string_view bytes, const std::string& name = "npy");
std::string npy_to_bytes(const Tensor& tensor);

/// The arrays of a NumPy archive, stored or deflated, in its order and without the ending `.npy` of their names.
std::vector<NamedTensor> load_npz(const std::string& path);
/// One of them. Errors: `ErrorKind::format` listing the names there are.
Tensor load_npz(const std::string& path, std::string_view name);
/// The same tensors give the same bytes: nothing of the time or the machine is written.
/// Errors: `ErrorKind::config` for equal names.
void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors, bool compress = false);
std::vector<NamedTensor> npz_from_bytes(std::string_view bytes, const std::string& name = "npz");
std::string npz_to_bytes(const std::vector<NamedTensor>& tensors, bool compress = false);

struct CsvOptions {
  /// One of `,` `;` `|` and tab. Empty: the first of tab, `;`, `|` and `,` that cuts the first ten records into equally
  /// many fields, more than one.
  std::string delimiter = {};
  /// Whether the first record holds names. Unset: it does when none of its fields is a number.
  std::optional<bool> header = {};
  /// Columns by name, or by position from 0 (from the back when negative) where no column has that name.
  /// Empty: all but the target.
  std::vector<std::string> inputs = {};
  /// The column to predict, by name or position. Empty: none.
  std::string target = {};
  /// Whether the target names a class (any text, also a number) or is a quantity.
  bool target_is_class = true;
  /// The known classes in order, as a trained model has them. Empty: those of the file, in numeric order when all
  /// are numbers, else in the order of their bytes.
  std::vector<std::string> labels = {};
  /// Stands for missing inputs: fields that are empty, `NA` or `?`.
  std::optional<double> fill = {};
};

struct CsvTable {
  Tensor inputs;   ///< float32 [N, F]
  Tensor targets;  ///< int64 [N] indices into `labels`, or float32 [N]; undefined without a target
  std::vector<std::string> input_names;
  std::string target_name;
  std::vector<std::string> labels;
};

/// Reads comma-separated values (RFC 4180: quoted fields may hold delimiters, line ends and doubled quotes), UTF-8 with
/// or without byte-order mark. Numbers have a decimal point whatever the locale says.
/// Errors: `ErrorKind::format` with row (the first is 1, header included) and column for missing values without
/// `fill`, for what is not a finite number that float32 can hold, and for rows of another length;
/// `ErrorKind::config` for columns that are not there.
CsvTable load_csv(const std::string& path, const CsvOptions& options = {});
CsvTable csv_from_bytes(std::string_view bytes, const CsvOptions& options = {}, const std::string& name = "csv");

/// The arrays of a file of any of these formats. The first bytes tell NPY and NPZ, the ending `.safetensors`, `.csv`,
/// `.tsv` and `.txt`. The one array of NPY is named `input`, a table's are `input` and, if `csv` names one, `target`.
std::vector<NamedTensor> load_arrays(const std::string& path, const CsvOptions& csv = {});

}  // namespace taper::io

#pragma GCC visibility pop
