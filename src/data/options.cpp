#include "taper/data.hpp"

namespace taper::data {

namespace {

constexpr const char* kFormats[] = {"automatic", "npz", "npy", "safetensors", "csv"};
constexpr const char* kNormalizations[] = {"none", "standard", "minmax"};

}  // namespace

std::span<const char* const> names_of(Format) { return kFormats; }
std::span<const char* const> names_of(Normalize) { return kNormalizations; }

void fields(SourceOptions& options, FieldVisitor& visitor) {
  visitor({"path", "file; relative to the working directory, else to the config's folder", kAny, true}, options.path);
  visitor({"format", "kind of file; automatic: by its first bytes and ending"}, options.format);
  visitor({"inputs", "name of the array (none: x), or the columns of a table (none: all but the targets)"},
          options.inputs);
  visitor({"targets", "name of the array, or the column of a table; for npy the file of targets"}, options.targets);
  visitor({"delimiter", "between the fields of a table; empty: found out"}, options.delimiter);
  visitor({"header", "whether a table's first row holds names; left out: found out"}, options.header);
  visitor({"fill", "stands for missing values of a table, which are errors otherwise"}, options.fill);
}

}  // namespace taper::data
