#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/json_scan.hpp"

extern template nlohmann::ordered_json nlohmann::ordered_json::parse<const std::string&>(
    const std::string&, nlohmann::ordered_json::parser_callback_t, bool, bool);
extern template std::string nlohmann::ordered_json::dump(int, char, bool, error_handler_t) const;

namespace taper::config {

/// A JSON value whose objects keep the order of their keys. What reads and writes it is compiled once, in
/// json_text.cpp, as it takes the compiler seconds.
using Json = nlohmann::ordered_json;

/// Where a value or a key comes from: a stretch of the text, or in words.
struct Place {
  std::optional<Span> span = {};
  std::string origin = {};
};

/// A JSON tree that knows where each of its values stands.
class Document {
 public:
  /// A value that stands in no text.
  explicit Document(Json value, std::string origin = "");

  Document(Json value, std::shared_ptr<const Source> source, std::vector<ScanNode> nodes);

  const Json& root() const { return root_; }

  /// Puts `value` where `pointer` says; from now on all below it comes from `origin`, for example "--set train.epochs".
  /// Makes the last key of the pointer if it is missing. False, and nothing changed, if the way to it does not exist.
  bool set(const std::string& pointer, Json value, std::string origin);

  /// Place of the value that `pointer` names; if there is none, of the innermost value on the way to it.
  Place value_place(std::string_view pointer) const { return place(pointer, false); }

  /// Place of the key of that value; of an element or a missing value, as `value_place`.
  Place key_place(std::string_view pointer) const { return place(pointer, true); }

  /// The value as it is written in the text (`1e3`), or as JSON if it stands in none.
  std::string literal(std::string_view pointer, const Json& value) const;

 private:
  Place place(std::string_view pointer, bool of_key) const;
  const std::string* origin_of(std::string_view pointer) const;
  std::uint32_t find_child(std::uint32_t parent, std::string_view token) const;

  Json root_;
  std::shared_ptr<const Source> source_;
  std::vector<ScanNode> nodes_;
  std::vector<std::pair<std::string, std::string>> origins_;  // pointer and origin, the newest last
};

/// Reads the text of `diagnostics` as strict JSON and reports to it all that is wrong (see `scan_json`). Nothing if
/// there is no tree; with duplicate keys there is one, with the last of them, so that the rest can be checked too.
std::optional<Document> parse_json(Diagnostics& diagnostics);

}  // namespace taper::config
