#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/fail.hpp"
#include "base/utf8.hpp"
#include "io/byte_source.hpp"
#include "io/csv_scanner.hpp"
#include "io/printable.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

namespace taper::io {

namespace {

enum class Parsed { number, not_a_number, out_of_range };

/// The whole of `text` as a decimal number, independent of the locale.
Parsed parse_number(std::string_view text, double& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return Parsed::not_a_number;
  return error == std::errc() ? Parsed::number : Parsed::out_of_range;
}

bool is_missing(std::string_view text) { return text.empty() || text == "NA" || text == "?"; }

char delimiter_of(const ByteSource& source, const CsvOptions& options) {
  if (options.delimiter.empty()) return sniff_delimiter(source);
  if (options.delimiter.size() != 1 || std::string_view(",;|\t").find(options.delimiter[0]) == std::string_view::npos)
    fail(ErrorKind::config, source.name(), ": delimiter: expected ',', ';', '|' or a tab, got '",
         printable(options.delimiter), "'");
  return options.delimiter[0];
}

class CsvReader {
 public:
  CsvReader(const ByteSource& source, const CsvOptions& options)
      : where_(source.name()), options_(options), scanner_(source, delimiter_of(source, options)) {
    if (options.fill && !std::isfinite(float(*options.fill)))
      fail(ErrorKind::config, where_, ": fill: expected a finite number float32 can hold, got ", *options.fill);
  }

  CsvTable read() {
    if (!scanner_.next()) fail(ErrorKind::format, where_, ": file is empty");
    columns_ = scanner_.size();
    read_header();
    choose_columns();
    for (std::size_t i = 0; i < options_.labels.size(); ++i) known_.emplace(options_.labels[i], std::int64_t(i));
    for (bool more = !has_header_ || scanner_.next(); more; more = scanner_.next()) read_row();
    if (rows_ == 0) fail(ErrorKind::format, where_, ": no rows of data after the header");
    return table();
  }

 private:
  void read_header() {
    has_header_ = options_.header ? *options_.header : looks_like_header();
    for (std::size_t i = 0; i < columns_; ++i) {
      names_.push_back(has_header_ ? std::string(scanner_.field(i)) : cat(i));
      if (find_invalid_utf8(names_.back()) != std::string_view::npos)
        fail(ErrorKind::format, where_, ": row 1: text is not UTF-8");
    }
  }

  bool looks_like_header() const {
    for (std::size_t i = 0; i < columns_; ++i) {
      double ignored;
      if (parse_number(scanner_.field(i), ignored) != Parsed::not_a_number) return false;
    }
    return true;
  }

  void choose_columns() {
    if (!options_.target.empty()) target_ = column(options_.target);
    for (const std::string& name : options_.inputs) {
      const std::size_t chosen = column(name);
      if (target_ == chosen) fail(ErrorKind::config, where_, ": column is both input and target: ", printable(name));
      if (std::find(inputs_.begin(), inputs_.end(), chosen) != inputs_.end())
        fail(ErrorKind::config, where_, ": column is chosen twice: ", printable(name));
      inputs_.push_back(chosen);
    }
    if (options_.inputs.empty())
      for (std::size_t i = 0; i < columns_; ++i)
        if (target_ != i) inputs_.push_back(i);
    if (inputs_.empty())
      fail(ErrorKind::config, where_, ": no column is left for the inputs; the target is the only one");
  }

  std::size_t column(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) {
      if (std::find(found + 1, names_.end(), name) != names_.end())
        fail(ErrorKind::config, where_, ": several columns have this name; choose by position: ", printable(name));
      return std::size_t(found - names_.begin());
    }
    const auto count = std::int64_t(columns_);
    std::int64_t position = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), position);
    if (error == std::errc() && end == name.data() + name.size() && position >= -count && position < count)
      return std::size_t(position < 0 ? position + count : position);
    std::string known;
    for (const auto& other : names_) {
      if (known.size() > 200) break;
      known += cat(known.empty() ? "" : ", ", printable(other));
    }
    fail(ErrorKind::config, where_, ": no such column: expected one of ", known, " or a position from ", -count, " to ",
         count - 1, ", got ", printable(name));
  }

  template <class... Parts>
  [[noreturn]] void fail_field(std::size_t i, const Parts&... parts) const {
    fail(ErrorKind::format, where_, ": row ", scanner_.row(), ", column ", printable(names_[i]), ": ", parts...);
  }

  void read_row() {
    if (scanner_.size() != columns_)
      fail(ErrorKind::format, where_, ": row ", scanner_.row(), ": expected ", columns_, " fields as in row 1, got ",
           scanner_.size());
    for (const std::size_t i : inputs_) {
      const bool filled = options_.fill && is_missing(scanner_.field(i));
      values_.push_back(filled ? float(*options_.fill) : number(i));
    }
    if (target_ && options_.target_is_class) classes_.push_back(class_index(*target_));
    if (target_ && !options_.target_is_class) quantities_.push_back(number(*target_));
    ++rows_;
  }

  float number(std::size_t i) const {
    const std::string_view text = scanner_.field(i);
    if (is_missing(text)) fail_field(i, "value is missing; give a fill value or remove the row");
    double value = 0;
    const Parsed parsed = parse_number(text, value);
    if (parsed == Parsed::not_a_number) {
      const bool decimal_comma = text.find(',') != std::string_view::npos;
      fail_field(i, "expected a number, got ", printable(text),
                 decimal_comma ? "; write the decimal mark as a point" : "");
    }
    if (parsed == Parsed::number && !std::isfinite(value))
      fail_field(i, "expected a finite number, got ", printable(text));
    if (parsed == Parsed::out_of_range || std::fabs(value) > double(std::numeric_limits<float>::max()))
      fail_field(i, "expected a number float32 can hold, got ", printable(text));
    return float(value);
  }

  std::int64_t class_index(std::size_t i) {
    const std::string_view text = scanner_.field(i);
    if (text.empty()) fail_field(i, "class is missing");
    const auto found = known_.find(text);
    if (found != known_.end()) return found->second;
    if (!options_.labels.empty())
      fail_field(i, "unknown class: expected one of the ", options_.labels.size(), " known, got ", printable(text));
    if (find_invalid_utf8(text) != std::string_view::npos) fail_field(i, "text is not UTF-8");
    return known_.emplace(std::string(text), std::int64_t(known_.size())).first->second;
  }

  /// The classes found, in their final order, and the indices of the rows brought in line with it.
  std::vector<std::string> sort_classes() {
    std::vector<std::pair<double, std::string>> order;
    bool all_numbers = true;
    for (const auto& [label, index] : known_) {
      double value = 0;
      all_numbers &= parse_number(label, value) == Parsed::number && std::isfinite(value);
      order.emplace_back(value, label);
    }
    // The map has them in the order of their bytes already.
    if (all_numbers) std::sort(order.begin(), order.end());
    std::vector<std::int64_t> rank(order.size());
    std::vector<std::string> labels;
    for (auto& [value, label] : order) {
      rank[std::size_t(known_.find(label)->second)] = std::int64_t(labels.size());
      labels.push_back(std::move(label));
    }
    for (std::int64_t& index : classes_) index = rank[std::size_t(index)];
    return labels;
  }

  CsvTable table() {
    CsvTable out;
    out.inputs = from_data(values_.data(), Shape{rows_, std::int64_t(inputs_.size())});
    for (const std::size_t i : inputs_) out.input_names.push_back(names_[i]);
    if (!target_) return out;
    out.target_name = names_[*target_];
    if (options_.target_is_class) {
      out.labels = options_.labels.empty() ? sort_classes() : options_.labels;
      out.targets = from_data(classes_.data(), Shape{rows_});
    } else {
      out.targets = from_data(quantities_.data(), Shape{rows_});
    }
    return out;
  }

  const std::string& where_;
  const CsvOptions& options_;
  CsvScanner scanner_;
  std::size_t columns_ = 0;
  bool has_header_ = false;
  std::vector<std::string> names_;
  std::vector<std::size_t> inputs_;
  std::optional<std::size_t> target_;
  std::int64_t rows_ = 0;
  std::vector<float> values_, quantities_;
  std::vector<std::int64_t> classes_;
  std::map<std::string, std::int64_t, std::less<>> known_;
};

}  // namespace

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  const ByteSource source(path);
  return CsvReader(source, options).read();
}

CsvTable csv_from_bytes(std::string_view bytes, const CsvOptions& options, const std::string& name) {
  const ByteSource source(name, bytes);
  return CsvReader(source, options).read();
}

}  // namespace taper::io
