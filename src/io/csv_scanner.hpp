#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.hpp"

namespace taper::io {

/// The records of a CSV file, one at a time: memory holds one record and one chunk of the file.
class CsvScanner {
 public:
  static constexpr std::size_t kMaxColumns = 16384, kMaxRecord = 1 << 24;

  CsvScanner(const ByteSource& source, char delimiter);

  /// Goes to the next record; false at the end of the file. Lines without any character are passed over, unless the
  /// file has one column, where they are a missing value.
  /// Errors: `ErrorKind::format`, `path: row N: ...`.
  bool next();
  /// Number of the record, from 1, as a spreadsheet shows it.
  std::int64_t row() const { return row_; }
  std::size_t size() const { return ends_.size(); }
  /// A field of the record, without quotes; unquoted ones without spaces around them.
  std::string_view field(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  int peek();
  int get();
  bool scan_record();
  void scan_quoted();
  void scan_plain();
  void put(int c);
  [[noreturn]] void fail_row(const char* what) const;

  const ByteSource& source_;
  SourceReader reader_;
  std::string chunk_, text_;
  std::size_t at_ = 0;
  std::vector<std::size_t> ends_;
  std::int64_t row_ = 0;
  char delimiter_;
};

/// The delimiter of a file, from its first records: the first of tab, `;`, `|` and `,` that cuts all of them into
/// equally many fields, more than one; else the most frequent one of the first record.
char sniff_delimiter(const ByteSource& source);

}  // namespace taper::io
