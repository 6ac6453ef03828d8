#include "config/json_scan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/fail.hpp"
#include "base/utf8.hpp"
#include "config/json_bare.hpp"
#include "config/json_string.hpp"

namespace taper::config {

namespace {

enum class Want { value, first_value, key, first_key, colon, comma_or_close, end, nothing };

std::string_view name_of(Want want, bool in_object) {
  switch (want) {
    case Want::value:
      return "a value";
    case Want::first_value:
      return "a value or ']'";
    case Want::key:
      return "a key in double quotes";
    case Want::first_key:
      return "a key in double quotes or '}'";
    case Want::colon:
      return "':' after the key";
    case Want::comma_or_close:
      return in_object ? "',' or '}'" : "',' or ']'";
    default:
      return "the end of the text";
  }
}

/// An array or object whose end is still to come.
struct Frame {
  std::uint32_t node;
  bool is_object;
  std::uint32_t last_child = ScanNode::kNone;
  std::size_t count = 0;
  std::map<std::string, std::size_t> keys = {};  // and where each first stood
};

class Scanner {
 public:
  explicit Scanner(Diagnostics& diagnostics)
      : diagnostics_(diagnostics), source_(*diagnostics.source()), text_(source_.text()) {
    frames_.reserve(kMaxDepth);
  }

  Scan run();

 private:
  Want step(Want want);
  Want value(Want want);
  Want key(Want want);
  Want open();
  Want close();
  Want string_value();
  Want bare_value();
  Want after_value();

  std::optional<Span> string_token(std::size_t steps);
  std::optional<Span> quoted_token(std::size_t steps);
  Span bare_token();
  bool add_key(Span token);
  void add_node();
  void skip_blanks();
  void skip_comment();

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool at_end() const { return at_ == text_.size(); }
  bool in_object() const { return !frames_.empty() && frames_.back().is_object; }
  Span here(std::size_t size) const { return {at_, std::min(at_ + size, text_.size())}; }
  std::string key_name(Span token) const;
  std::size_t value_steps() const { return frames_.size(); }
  std::size_t container_steps() const { return frames_.empty() ? 0 : frames_.size() - 1; }
  std::string pointer(std::size_t steps) const;
  std::string value_pointer() const { return pointer(value_steps()); }
  std::string container_pointer() const { return pointer(container_steps()); }

  void report(Span span, std::string pointer, std::string message);
  void refuse(Span span, std::string pointer, std::string message);
  Want unexpected(Want want);
  void unclosed(Span span, std::size_t steps);
  std::string hint_unclosed() const;
  std::string hint_at(Want want) const;
  std::pair<Span, std::string> token_here() const;

  Diagnostics& diagnostics_;
  const Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Frame> frames_;
  std::vector<ScanNode> nodes_;
  Span pending_key_ = {};
  std::size_t comma_ = 0;
  bool is_json_ = true;
  bool said_encoding_ = false;
};

/// Reports what leaves a tree that can still be built.
void Scanner::report(Span span, std::string pointer, std::string message) {
  diagnostics_.add({.pointer = std::move(pointer), .message = std::move(message), .span = span});
}

/// Reports what is not JSON.
void Scanner::refuse(Span span, std::string pointer, std::string message) {
  is_json_ = false;
  report(span, std::move(pointer), std::move(message));
}

/// The characters of a key, which may also be a bare word or stand in single quotes.
std::string Scanner::key_name(Span token) const {
  const std::string_view written = source_.slice(token);
  return is_bare(written[0]) ? std::string(written) : unescape(written);
}

/// The first `steps` steps from the root to the newest value. Nothing when nobody will read it: a pointer can be as
/// long as the text, and so can the list of what is wrong.
std::string Scanner::pointer(std::size_t steps) const {
  std::string path;
  if (diagnostics_.is_full()) return path;
  for (std::size_t i = 0; i < steps; ++i) {
    const Frame& frame = frames_[i];
    path = frame.is_object ? child(path, key_name(nodes_[frame.last_child].key())) : child(path, frame.count - 1);
  }
  return path;
}

Scan Scanner::run() {
  if (text_.size() > kMaxTextSize) {
    refuse({0, 1}, "", cat("text is too long: expected at most ", kMaxTextSize, " bytes, got ", text_.size()));
    return {};
  }
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  Want want = Want::value;
  while (want != Want::nothing) {
    skip_blanks();
    want = step(want);
  }
  return {std::move(nodes_), is_json_};
}

Want Scanner::step(Want want) {
  const char c = peek();
  const bool is_closer = !frames_.empty() && c == (in_object() ? '}' : ']');
  switch (want) {
    case Want::first_value:
    case Want::first_key:
      if (is_closer) return close();
      break;
    case Want::value:
    case Want::key:
      if (is_closer && text_[comma_] == ',') {
        refuse({comma_, comma_ + 1}, container_pointer(),
               "trailing comma: expected no ',' before the closing bracket; remove it");
        return close();
      }
      break;
    case Want::comma_or_close:
      if (is_closer) return close();
      if (c != ',') return unexpected(want);
      comma_ = at_++;
      return in_object() ? Want::key : Want::value;
    case Want::colon:
      if (c != ':') return unexpected(want);
      comma_ = at_++;
      return Want::value;
    default:
      return at_end() ? Want::nothing : unexpected(want);
  }
  return want == Want::value || want == Want::first_value ? value(want) : key(want);
}

Want Scanner::value(Want want) {
  const char c = peek();
  if (c == '{' || c == '[') return open();
  if (c == '"' || c == '\'') return string_value();
  if (is_bare(c)) return bare_value();
  return unexpected(want);
}

void Scanner::add_node() {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  ScanNode node;
  node.begin = node.end = static_cast<std::uint32_t>(at_);
  node.key_begin = static_cast<std::uint32_t>(pending_key_.begin);
  node.key_end = static_cast<std::uint32_t>(pending_key_.end);
  pending_key_ = {};
  nodes_.push_back(node);
  if (frames_.empty()) return;
  Frame& frame = frames_.back();
  (frame.count == 0 ? nodes_[frame.node].first_child : nodes_[frame.last_child].next_sibling) = index;
  frame.last_child = index;
  ++frame.count;
}

Want Scanner::open() {
  add_node();
  if (frames_.size() == kMaxDepth) {
    refuse(here(1), value_pointer(),
           cat("nested too deep: expected at most ", kMaxDepth, " arrays and objects inside each other, got ",
               kMaxDepth + 1));
    return Want::nothing;
  }
  const bool is_object = peek() == '{';
  frames_.push_back({.node = static_cast<std::uint32_t>(nodes_.size() - 1), .is_object = is_object});
  ++at_;
  return is_object ? Want::first_key : Want::first_value;
}

Want Scanner::close() {
  ++at_;
  nodes_[frames_.back().node].end = static_cast<std::uint32_t>(at_);
  frames_.pop_back();
  return after_value();
}

Want Scanner::after_value() { return frames_.empty() ? Want::end : Want::comma_or_close; }

Want Scanner::string_value() {
  add_node();
  const auto token = string_token(value_steps());
  if (!token) return Want::nothing;
  nodes_.back().end = static_cast<std::uint32_t>(token->end);
  return after_value();
}

Want Scanner::bare_value() {
  add_node();
  const Span token = bare_token();
  nodes_.back().end = static_cast<std::uint32_t>(token.end);
  if (std::string fault = fault_of_bare(source_.slice(token)); !fault.empty()) {
    refuse(token, value_pointer(), std::move(fault));
  }
  return after_value();
}

Want Scanner::key(Want want) {
  std::optional<Span> token;
  if (peek() == '"' || peek() == '\'') {
    token = string_token(container_steps());
    if (!token) return Want::nothing;
  } else if (is_bare(peek())) {
    token = bare_token();
    const std::string word = shown(source_.slice(*token));
    refuse(*token, container_pointer(), cat("expected a key in double quotes, got ", word, "; write \"", word, "\""));
  } else {
    return unexpected(want);
  }
  return add_key(*token) ? Want::colon : Want::nothing;
}

/// Takes `token` as the key of the next value. False if the object may not have another.
bool Scanner::add_key(Span token) {
  Frame& frame = frames_.back();
  pending_key_ = token;
  const auto [entry, is_new] = frame.keys.emplace(key_name(token), token.begin);
  const auto& [name, first] = *entry;
  if (is_new && name.find('\0') != std::string::npos) {
    report(token, child(container_pointer(), name), "expected a key of printable characters, got one with U+0000");
  }
  if (!is_new) {
    // Finding the column costs the length of a line, which is too much for each of a million.
    const std::string where = diagnostics_.is_full() ? "" : to_string(source_.position(first));
    report(token, child(container_pointer(), name),
           cat("duplicate key: expected each key once; the first is in ", where));
  }
  if (frame.keys.size() <= kMaxKeys) return true;
  refuse(token, container_pointer(), cat("too many keys: expected at most ", kMaxKeys, " in one object"));
  return false;
}

std::optional<Span> Scanner::string_token(std::size_t steps) {
  if (peek() == '\'') return quoted_token(steps);
  ScannedString scanned = scan_string(text_, at_);
  const Span token{at_, scanned.end};
  for (StringFault& fault : scanned.faults) {
    // One file saved in another encoding has a thousand such bytes.
    if (fault.is_encoding && std::exchange(said_encoding_, true)) continue;
    refuse(fault.span, pointer(steps), std::move(fault.message));
  }
  if (!scanned.is_closed) {
    unclosed(token, steps);
    return std::nullopt;
  }
  at_ = scanned.end;
  return token;
}

/// A string between single quotes, which JSON does not have.
std::optional<Span> Scanner::quoted_token(std::size_t steps) {
  const std::size_t end = std::min(text_.find_first_of("'\n\r", at_ + 1), text_.size());
  if (end == text_.size() || text_[end] != '\'') {
    unclosed({at_, end}, steps);
    return std::nullopt;
  }
  const Span token{at_, end + 1};
  const std::string inside = shown(source_.slice({at_ + 1, end}));
  refuse(token, pointer(steps), cat("expected double quotes, got '", inside, "'; write \"", inside, "\""));
  at_ = token.end;
  return token;
}

void Scanner::unclosed(Span span, std::size_t steps) {
  refuse(span, pointer(steps),
         cat("unterminated string: expected a closing quote, got the end of the ",
             span.end == text_.size() ? "text" : "line; a line break is written \\n"));
}

Span Scanner::bare_token() {
  const std::size_t begin = at_;
  while (!at_end() && is_bare(text_[at_])) ++at_;
  return {begin, at_};
}

void Scanner::skip_blanks() {
  while (!at_end()) {
    const char c = text_[at_];
    const bool is_comment =
        c == '#' || (c == '/' && at_ + 1 < text_.size() && (text_[at_ + 1] == '/' || text_[at_ + 1] == '*'));
    if (is_comment) {
      skip_comment();
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

void Scanner::skip_comment() {
  const std::size_t begin = at_;
  if (text_.substr(at_).starts_with("/*")) {
    const std::size_t close = text_.find("*/", at_ + 2);
    at_ = close == std::string_view::npos ? text_.size() : close + 2;
  } else {
    at_ = std::min(text_.find_first_of("\n\r", at_), text_.size());
  }
  refuse({begin, at_}, container_pointer(), "expected JSON, got a comment; JSON has no comments");
}

/// What stands at the reading position, and its name for a message.
std::pair<Span, std::string> Scanner::token_here() const {
  if (at_end()) {
    const std::size_t last = text_.find_last_not_of(" \t\r\n");
    const std::size_t end = last == std::string_view::npos ? 0 : last + 1;
    return {{end, end}, "the end of the text"};
  }
  if (peek() == '"') {
    const Span token{at_, scan_string(text_, at_).end};
    return {token, cat("the string ", shown(source_.slice(token)))};
  }
  if (is_bare(peek())) {
    std::size_t end = at_;
    while (end < text_.size() && is_bare(text_[end])) ++end;
    return {{at_, end}, shown(source_.slice({at_, end}))};
  }
  const CodePoint point = decode_utf8(text_.substr(at_));
  const Span token = here(std::max<std::size_t>(point.size, 1));
  if (point.size == 0) return {token, "a byte that is not UTF-8"};
  return {token, cat("'", shown(source_.slice(token)), "'")};
}

/// "; the '{' in line 3, column 5 is not closed".
std::string Scanner::hint_unclosed() const {
  const std::size_t begin = nodes_[frames_.back().node].begin;
  return cat("; the '", text_[begin], "' in ", to_string(source_.position(begin)), " is not closed");
}

std::string Scanner::hint_at(Want want) const {
  const std::string_view rest = text_.substr(at_);
  if (rest.empty() && !frames_.empty()) return hint_unclosed();
  if (rest.empty()) return text_.find_first_not_of(" \t\r\n") == std::string_view::npos ? "; the text is empty" : "";
  for (const std::string_view quote : {"\u201C", "\u201D", "\u2018", "\u2019"}) {
    if (rest.starts_with(quote)) return "; strings stand in plain double quotes";
  }
  if (rest.starts_with("\u00A0")) return "; this is a no-break space";
  const char c = rest[0];
  if (c == '\0' || decode_utf8(rest).size == 0) return "; save the file as UTF-8";

  const bool is_closer = c == '}' || c == ']';
  if (want == Want::end && is_closer) return "; one closing bracket is too many";
  const bool starts_value = c == '"' || c == '{' || c == '[' || is_bare(c);
  if (want == Want::comma_or_close && is_closer) return hint_unclosed();
  if (want == Want::comma_or_close) return starts_value ? "; a comma is missing before it" : "";
  return c == ',' && want != Want::colon && want != Want::end ? "; one comma is too many" : "";
}

/// Reports that what stands here is not what `want` says.
Want Scanner::unexpected(Want want) {
  const auto [span, got] = token_here();
  refuse(span, container_pointer(), cat("expected ", name_of(want, in_object()), ", got ", got, hint_at(want)));
  return Want::nothing;
}

}  // namespace

Scan scan_json(Diagnostics& diagnostics) { return Scanner(diagnostics).run(); }

std::string child(const std::string& pointer, std::string_view key) {
  std::string out = pointer + "/";
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string child(const std::string& pointer, std::size_t index) { return cat(pointer, "/", index); }

}  // namespace taper::config
