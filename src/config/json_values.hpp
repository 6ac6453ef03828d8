#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/json_text.hpp"

namespace taper::config {

/// Takes typed values out of a document. Nothing is converted: what is not exactly the type asked for is reported, with
/// what was expected and what stands there, and the answer is nothing. Every `pointer` names the `value` beside it.
class Reader {
 public:
  Reader(const Document& document, Diagnostics& diagnostics) : document_(document), diagnostics_(diagnostics) {}

  const Document& document() const { return document_; }

  /// The layer that is being read, for the messages; "" for none.
  void set_layer(std::string name) { layer_ = std::move(name); }
  const std::string& layer() const { return layer_; }

  /// A number written without point and exponent that fits 64 bits.
  std::optional<std::int64_t> integer(const Json& value, const std::string& pointer);
  /// Any number; a text with one outside the range of double has no document.
  std::optional<double> number(const Json& value, const std::string& pointer);
  std::optional<bool> boolean(const Json& value, const std::string& pointer);
  std::optional<std::string> string(const Json& value, const std::string& pointer);
  /// A string that is one of `names`.
  std::optional<std::string> one_of(const Json& value, const std::string& pointer,
                                    std::span<const std::string_view> names);

  /// Arrays of these; every element that is wrong is reported.
  std::optional<std::vector<std::int64_t>> integers(const Json& value, const std::string& pointer);
  std::optional<std::vector<double>> numbers(const Json& value, const std::string& pointer);
  std::optional<std::vector<bool>> booleans(const Json& value, const std::string& pointer);
  std::optional<std::vector<std::string>> strings(const Json& value, const std::string& pointer);

  /// Whether `value` is an object, or an array; reported if not.
  bool is_object(const Json& value, const std::string& pointer);
  bool is_array(const Json& value, const std::string& pointer, std::string_view of_what);

  /// Reports every key of `object` that is not among `names`, with the nearest of them.
  void refuse_unknown_keys(const Json& object, const std::string& pointer, std::span<const std::string_view> names);

  /// The member `key`, or null after reporting that it is missing.
  const Json* required(const Json& object, const std::string& pointer, std::string_view key);

  /// Reports `message` about the value, or the key, that `pointer` names.
  void error(const std::string& pointer, std::string message);
  void error_at_key(const std::string& pointer, std::string message);

 private:
  void add(const std::string& pointer, std::string message, bool at_key);
  void expected(const char* what, const Json& value, const std::string& pointer);
  std::string hint_for(std::string_view what, const Json& value) const;
  template <class Element, class Read>
  std::optional<std::vector<Element>> elements(const Json& value, const std::string& pointer, const char* of_what,
                                               Read read);

  const Document& document_;
  Diagnostics& diagnostics_;
  std::string layer_;
};

}  // namespace taper::config
