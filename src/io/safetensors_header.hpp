#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/elements.hpp"
#include "taper/shape.hpp"

namespace taper::io {

/// Limits that keep what is built from a header smaller than the header plus 1 MiB.
inline constexpr std::int64_t kMaxHeader = 100'000'000, kMaxTensors = 10000, kMaxMetadata = 4096;

/// The safetensors name of an element type, `F32` for example.
std::string_view safetensors_dtype(Stored type);

/// Reads the JSON subset of a header: objects, strings, arrays of integers. It decodes escapes where they stand, so
/// strings are views into the text it was given. It refuses everything else, with the position.
class HeaderParser {
 public:
  /// `text` is changed in place and must outlive all views.
  HeaderParser(std::string where, char* text, std::size_t size) : where_(std::move(where)), text_(text), size_(size) {}

  /// The first byte must be `c`.
  void begin(char c);
  /// `c` must come next.
  void expect(char c);
  /// Skips `c` if it comes next.
  bool take(char c);
  std::string_view string();
  std::int64_t integer();
  /// Only spaces may follow. Errors: as all of these, `ErrorKind::format`, `where byte N: expected E, got G`.
  void end();
  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = position; }

 private:
  [[noreturn]] void fail_expected(std::string_view expected) const;
  void skip_space();
  void escape(std::string& decoded);
  std::uint32_t hex4();

  std::string where_;
  char* text_;
  std::size_t size_, at_ = 0;
};

/// A checked safetensors header: every range lies in the data, they fill it without hole or overlap, and each has the
/// size its element type and shape ask for.
class SafetensorsHeader {
 public:
  struct Entry {
    std::int64_t begin, end;  ///< within the data
    std::string_view name;
    std::uint32_t shape_at;
    Stored type;
  };

  /// Errors: `ErrorKind::format`, `where: ...`.
  SafetensorsHeader(const std::string& where, std::string text, std::int64_t data_size);
  SafetensorsHeader(const SafetensorsHeader&) = delete;
  SafetensorsHeader& operator=(const SafetensorsHeader&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<std::pair<std::string_view, std::string_view>>& metadata() const { return metadata_; }
  Shape shape(const Entry& entry) { return Shape(extents(entry)); }
  /// The text of a view of this header, for a parser of its own.
  char* text_of(std::string_view view) { return text_.data() + (view.data() - text_.data()); }

 private:
  std::vector<std::int64_t> extents(const Entry& entry);
  void parse_metadata();
  void parse_tensor(std::string_view name);
  void check_names() const;
  void check_size(const Entry& entry, std::int64_t data_size);
  void check_ranges(std::int64_t data_size) const;

  std::string where_, text_;
  HeaderParser parser_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string_view, std::string_view>> metadata_;
};

}  // namespace taper::io
