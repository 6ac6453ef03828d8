#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "taper/fields.hpp"
#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

/// Samples and their targets: from files, split, standardised, and in an order that depends on seed and epoch alone.
namespace taper::data {

enum class Format { automatic, npz, npy, safetensors, csv };
std::span<const char* const> names_of(Format);

/// Where one set of samples comes from; the JSON object below `data.train` and its like.
struct SourceOptions {
  std::string path;
  Format format = Format::automatic;     ///< by the file's first bytes and ending
  std::vector<std::string> inputs = {};  ///< the array's name (none: "x"); in a CSV the columns (none: all but targets)
  std::string targets = "y";             ///< the array's name; in a CSV the column; beside an NPY the file of targets
  std::string delimiter = "";            ///< CSV: sniffed when empty
  std::optional<bool> header = {};       ///< CSV: sniffed when left out
  std::optional<double> fill = {};       ///< CSV: stands for missing values, which are errors otherwise
  /// No field: the config file's folder, where a relative path is looked for that is not in the working directory.
  std::string base_directory = {};
};
void fields(SourceOptions& options, FieldVisitor& visitor);

/// Inputs [N, ...] float32 and targets: [N] int64 classes, or float32 numbers of any shape [N, ...].
struct Dataset {
  Tensor inputs, targets;
  std::vector<std::string> labels;  ///< names of the classes; empty when the source has none
  std::string fingerprint;          ///< size and checksum of the file, for resuming and reports

  std::int64_t size() const { return inputs.size(0); }
  bool has_classes() const { return targets.dtype() == DType::int64; }
  /// The samples `index` names, int64 [n].
  Dataset subset(const Tensor& index) const;
};

/// Classes from 0 to kMaxClasses - 1: what is above is a mistake, not a class.
inline constexpr std::int64_t kMaxClasses = 1 << 20;

/// Where a source's file is: its path, or the path in `base_directory` when only that exists.
std::string resolve_path(const SourceOptions& options);

/// Size and checksum of a source's file, or files. Errors: `ErrorKind::io`.
std::string fingerprint(const SourceOptions& options);

/// Reads a source. `expect_classes` says whether targets are class indices (as for CrossEntropyLoss) or numbers.
/// `labels` are the known classes of a table whose targets are text, in order; none: those of the file.
/// Errors: `ErrorKind::io`, `ErrorKind::format` (also NaN and Inf, with sample and position), `ErrorKind::shape`
/// (counts differ), `ErrorKind::config` (no such array).
Dataset load_dataset(const SourceOptions& options, bool expect_classes, const std::vector<std::string>& labels = {});

/// The same from tensors in memory; `where` takes the place of the path in error sentences.
Dataset make_dataset(const std::string& where, const Tensor& inputs, const Tensor& targets, bool expect_classes);

/// Takes a share of the samples away for validation: class by class when targets are classes, in an order that `seed`
/// alone decides. Returns {rest, taken}. Errors: `ErrorKind::config` when either would be empty.
std::pair<Dataset, Dataset> split_dataset(const Dataset& dataset, double share, std::uint64_t seed);

enum class Normalize { none, standard, minmax };
std::span<const char* const> names_of(Normalize);

/// x' = (x - shift) / scale, one shift and scale for each channel (dimension 1 of the inputs).
struct Normalization {
  Tensor shift, scale;  ///< [C] float32; undefined: nothing is done

  /// From training samples: mean and standard deviation, or minimum and extent; a constant channel has scale 1.
  static Normalization fit(Normalize kind, const Tensor& inputs);
  /// The same for samples [N, C, ...]. Errors: `ErrorKind::shape` when the channels differ.
  Tensor apply(const Tensor& inputs) const;
};

/// The order in which epoch `epoch` visits `n` samples: a pure function of seed and epoch. int64 [n].
Tensor epoch_order(std::int64_t n, std::uint64_t seed, std::int64_t epoch, bool shuffle = true);

}  // namespace taper::data

#pragma GCC visibility pop
