#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.hpp"

namespace taper::config {

/// Arrays and objects inside each other, the outermost counted.
inline constexpr std::size_t kMaxDepth = 32;
/// A tree finds its keys by looking at all of them, so that many keys in one object cost the square of their number.
inline constexpr std::size_t kMaxKeys = 1024;
inline constexpr std::size_t kMaxTextSize = std::size_t{4} << 20;

/// Where a value of a JSON text stands, and its key if it has one. Nodes refer to each other by their index.
struct ScanNode {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t key_begin = 0, key_end = 0;  ///< the key with its quotes; empty for elements and the root
  std::uint32_t begin = 0, end = 0;
  std::uint32_t first_child = kNone;
  std::uint32_t next_sibling = kNone;

  bool has_key() const { return key_end > key_begin; }
  Span key() const { return {key_begin, key_end}; }
  Span value() const { return {begin, end}; }
};

struct Scan {
  std::vector<ScanNode> nodes;  ///< in the order of the text, the root first
  bool is_json = false;         ///< a JSON reader may build the tree
};

/// Checks the text of `diagnostics` in one pass, with no recursion, and reports everything that makes it other than
/// plain JSON of bounded depth. Goes on after what is wrong inside one value (a duplicate key, `NaN`, a comment, a
/// comma too many); what leaves its structure in doubt ends the pass. A byte order mark at the start is skipped, as
/// editors write one unasked.
Scan scan_json(Diagnostics& diagnostics);

/// The JSON pointer of the member `key` (or of an element) of what `pointer` names.
std::string child(const std::string& pointer, std::string_view key);
std::string child(const std::string& pointer, std::size_t index);

}  // namespace taper::config
