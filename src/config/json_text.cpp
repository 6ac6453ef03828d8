#include "config/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/fail.hpp"
#include "config/json_string.hpp"

template nlohmann::ordered_json nlohmann::ordered_json::parse<const std::string&>(
    const std::string&, nlohmann::ordered_json::parser_callback_t, bool, bool);
template std::string nlohmann::ordered_json::dump(int, char, bool, error_handler_t) const;

namespace taper::config {

namespace {

/// One step of a JSON pointer with `~1` and `~0` resolved.
std::string key_of(std::string_view token) {
  std::string key;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool is_escape = token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1');
    key += !is_escape ? token[i] : token[i + 1] == '0' ? '~' : '/';
    i += is_escape;
  }
  return key;
}

std::optional<std::size_t> index_of(std::string_view token) {
  std::size_t index = 0;
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, index);
  if (token.empty() || error != std::errc() || stop != end) return std::nullopt;
  return index;
}

/// Takes the first step off `pointer`, which starts with a slash.
std::string_view take_token(std::string_view& pointer) {
  const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
  const std::string_view token = pointer.substr(1, end - 1);
  pointer.remove_prefix(end);
  return token;
}

}  // namespace

Document::Document(Json value, std::string origin) : root_(std::move(value)) {
  origins_.emplace_back("", std::move(origin));
}

Document::Document(Json value, std::shared_ptr<const Source> source, std::vector<ScanNode> nodes)
    : root_(std::move(value)), source_(std::move(source)), nodes_(std::move(nodes)) {}

bool Document::set(const std::string& pointer, Json value, std::string origin) {
  Json* target = &root_;
  std::string_view rest = pointer;
  while (!rest.empty()) {
    const std::string_view token = take_token(rest);
    if (target->is_array()) {
      const auto index = index_of(token);
      if (!index || *index >= target->size()) return false;
      target = &(*target)[*index];
    } else if (target->is_object()) {
      const std::string key = key_of(token);
      if (!rest.empty() && !target->contains(key)) return false;
      target = &(*target)[key];
    } else {
      return false;
    }
  }
  *target = std::move(value);
  origins_.emplace_back(pointer, std::move(origin));
  return true;
}

const std::string* Document::origin_of(std::string_view pointer) const {
  for (auto entry = origins_.rbegin(); entry != origins_.rend(); ++entry) {
    const std::string& top = entry->first;
    const bool is_below = pointer.starts_with(top) && (pointer.size() == top.size() || pointer[top.size()] == '/');
    if (is_below) return &entry->second;
  }
  return nullptr;
}

/// The child `token` names, of equal keys the last; `kNone` if there is none.
std::uint32_t Document::find_child(std::uint32_t parent, std::string_view token) const {
  const std::string key = key_of(token);
  const auto index = index_of(token);
  std::uint32_t found = ScanNode::kNone;
  std::size_t count = 0;
  for (std::uint32_t i = nodes_[parent].first_child; i != ScanNode::kNone; i = nodes_[i].next_sibling, ++count) {
    const ScanNode& node = nodes_[i];
    const bool matches = node.has_key() ? unescape(source_->slice(node.key())) == key : index == count;
    if (matches) found = i;
    if (matches && !node.has_key()) break;
  }
  return found;
}

Place Document::place(std::string_view pointer, bool of_key) const {
  if (const std::string* origin = origin_of(pointer)) return {.origin = *origin};
  if (nodes_.empty()) return {};
  std::uint32_t node = 0;
  bool is_whole = true;
  while (!pointer.empty() && is_whole) {
    const std::uint32_t next = find_child(node, take_token(pointer));
    is_whole = next != ScanNode::kNone;
    if (is_whole) node = next;
  }
  const bool key_wanted = of_key && is_whole && nodes_[node].has_key();
  return {.span = key_wanted ? nodes_[node].key() : nodes_[node].value()};
}

std::string Document::literal(std::string_view pointer, const Json& value) const {
  const Place place = value_place(pointer);
  if (place.span) return std::string(source_->slice(*place.span));
  const bool has_no_literal = value.is_number_float() && !std::isfinite(value.get<double>());
  return has_no_literal ? cat(value.get<double>()) : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Document> parse_json(Diagnostics& diagnostics) {
  Scan scan = scan_json(diagnostics);
  if (!scan.is_json) return std::nullopt;
  Json tree = Json::parse(diagnostics.source()->text(), nullptr, false);
  if (tree.is_discarded()) {
    diagnostics.add({.pointer = "", .message = "expected JSON, got another text"});
    return std::nullopt;
  }
  return Document(std::move(tree), diagnostics.source(), std::move(scan.nodes));
}

}  // namespace taper::config
