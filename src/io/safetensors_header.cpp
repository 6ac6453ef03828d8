#include "io/safetensors_header.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "base/utf8.hpp"
#include "io/printable.hpp"

namespace taper::io {

namespace {

struct TypeName {
  std::string_view name;
  Stored type;
};
constexpr TypeName kTypes[] = {{"F64", Stored::f64},     {"F32", Stored::f32}, {"F16", Stored::f16},
                               {"BF16", Stored::bf16},   {"I64", Stored::i64}, {"I32", Stored::i32},
                               {"I16", Stored::i16},     {"I8", Stored::i8},   {"U8", Stored::u8},
                               {"BOOL", Stored::boolean}};

}  // namespace

std::string_view safetensors_dtype(Stored type) {
  for (const auto& known : kTypes)
    if (known.type == type) return known.name;
  return "?";
}

void HeaderParser::fail_expected(std::string_view expected) const {
  const unsigned char c = at_ < size_ ? static_cast<unsigned char>(text_[at_]) : 0;
  const std::string got = at_ >= size_            ? "the end"
                          : c < 0x20 || c >= 0x7F ? cat("the byte ", int(c))
                                                  : cat('\'', char(c), '\'');
  fail(ErrorKind::format, where_, " byte ", at_, ": expected ", expected, ", got ", got);
}

void HeaderParser::skip_space() {
  while (at_ < size_ && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
}

bool HeaderParser::take(char c) {
  skip_space();
  if (at_ == size_ || text_[at_] != c) return false;
  ++at_;
  return true;
}

void HeaderParser::expect(char c) {
  if (!take(c)) fail_expected(cat('\'', c, '\''));
}

void HeaderParser::begin(char c) {
  if (at_ == size_ || text_[at_] != c) fail_expected(cat('\'', c, '\''));
  ++at_;
}

void HeaderParser::end() {
  while (at_ < size_ && text_[at_] == ' ') ++at_;
  if (at_ < size_) fail_expected("only spaces after the last brace");
}

std::string_view HeaderParser::string() {
  skip_space();
  if (at_ == size_ || text_[at_] != '"') fail_expected("a string");
  ++at_;
  char* const begin = text_ + at_;
  char* out = begin;
  std::string decoded;
  // An escape is never shorter than what it stands for, so the decoded text fits where the escaped one was.
  while (true) {
    if (at_ == size_ || static_cast<unsigned char>(text_[at_]) < 0x20) fail_expected("the closing quote of a string");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') {
      *out++ = text_[at_++];
      continue;
    }
    decoded.clear();
    escape(decoded);
    std::memcpy(out, decoded.data(), decoded.size());
    out += decoded.size();
  }
  ++at_;
  return {begin, std::size_t(out - begin)};
}

void HeaderParser::escape(std::string& decoded) {
  ++at_;
  constexpr std::string_view kShort = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  const std::size_t kind = at_ < size_ ? kShort.find(text_[at_]) : std::string_view::npos;
  if (kind != std::string_view::npos) {
    decoded += kMeant[kind];
    ++at_;
    return;
  }
  if (at_ == size_ || text_[at_] != 'u') fail_expected("one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
  ++at_;
  const std::size_t start = at_;
  std::uint32_t code = hex4();
  if (code >= 0xD800 && code < 0xDC00 && at_ + 1 < size_ && text_[at_] == '\\' && text_[at_ + 1] == 'u') {
    at_ += 2;
    const std::uint32_t low = hex4();
    code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
  }
  if (code == 0 || (code >= 0xD800 && code < 0xE000)) {
    at_ = start;
    fail_expected("a character that is neither NUL nor half of a surrogate pair");
  }
  append_utf8(decoded, code);
}

std::uint32_t HeaderParser::hex4() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < size_ ? text_[at_] : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail_expected("four hexadecimal digits");
    code = code * 16 + std::uint32_t(digit);
  }
  return code;
}

std::int64_t HeaderParser::integer() {
  skip_space();
  const std::size_t start = at_;
  std::int64_t value = 0;
  for (; at_ < size_ && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    if (at_ == start + 1 && value == 0) fail_expected("no digit after a leading 0");
    const auto tens = checked::mul(value, 10);
    const auto next = tens ? checked::add(*tens, text_[at_] - '0') : std::nullopt;
    if (!next) fail_expected("an integer below 2^63");
    value = *next;
  }
  if (at_ == start) fail_expected("an integer from 0");
  return value;
}

SafetensorsHeader::SafetensorsHeader(const std::string& where, std::string text, std::int64_t data_size)
    : where_(where), text_(std::move(text)), parser_(cat(where_, ": header"), text_.data(), text_.size()) {
  const std::size_t invalid = find_invalid_utf8(text_);
  if (invalid != std::string::npos) fail(ErrorKind::format, where_, ": header byte ", invalid, ": expected UTF-8");
  const auto objects = std::count(text_.begin(), text_.end(), '{');
  entries_.reserve(std::size_t(std::min<std::int64_t>(objects, kMaxTensors)));
  bool has_metadata = false;
  parser_.begin('{');
  if (!parser_.take('}')) {
    do {
      const std::string_view name = parser_.string();
      parser_.expect(':');
      if (name != "__metadata__") {
        parse_tensor(name);
      } else if (std::exchange(has_metadata, true)) {
        fail(ErrorKind::format, where_, ": duplicate key in the header: __metadata__");
      } else {
        parse_metadata();
      }
    } while (parser_.take(','));
    parser_.expect('}');
  }
  parser_.end();
  check_names();
  for (const Entry& entry : entries_) check_size(entry, data_size);
  check_ranges(data_size);
}

void SafetensorsHeader::parse_metadata() {
  parser_.expect('{');
  if (parser_.take('}')) return;
  do {
    if (std::int64_t(metadata_.size()) == kMaxMetadata)
      fail(ErrorKind::format, where_, ": too many metadata entries: expected at most ", kMaxMetadata);
    const std::string_view key = parser_.string();
    parser_.expect(':');
    metadata_.emplace_back(key, parser_.string());
  } while (parser_.take(','));
  parser_.expect('}');
}

void SafetensorsHeader::parse_tensor(std::string_view name) {
  if (std::int64_t(entries_.size()) == kMaxTensors)
    fail(ErrorKind::format, where_, ": too many tensors: expected at most ", kMaxTensors);
  const std::string where = cat(where_, ": tensor ", printable(name));
  Entry entry{0, 0, name, 0, Stored::f32};
  bool seen[3] = {};
  const auto first = [&](int which, std::string_view key) {
    if (std::exchange(seen[which], true)) fail(ErrorKind::format, where, ": duplicate key: ", key);
  };
  parser_.expect('{');
  do {
    const std::string_view key = parser_.string();
    parser_.expect(':');
    if (key == "dtype") {
      first(0, key);
      const std::string_view dtype = parser_.string();
      const auto* known =
          std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.name == dtype; });
      if (known == std::end(kTypes))
        fail(ErrorKind::format, where,
             ": element type is not read: expected F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL, got ",
             printable(dtype));
      entry.type = known->type;
    } else if (key == "shape") {
      first(1, key);
      entry.shape_at = std::uint32_t(parser_.position());
      int rank = 0;
      parser_.expect('[');
      if (parser_.take(']')) continue;
      do {
        if (rank++ == Shape::kMaxRank)
          fail(ErrorKind::format, where, ": too many dimensions: expected at most ", Shape::kMaxRank);
        parser_.integer();
      } while (parser_.take(','));
      parser_.expect(']');
    } else if (key == "data_offsets") {
      first(2, key);
      parser_.expect('[');
      entry.begin = parser_.integer();
      parser_.expect(',');
      entry.end = parser_.integer();
      parser_.expect(']');
    } else {
      fail(ErrorKind::format, where, ": unknown key: expected dtype, shape or data_offsets, got ", printable(key));
    }
  } while (parser_.take(','));
  parser_.expect('}');
  for (int i = 0; i < 3; ++i) {
    constexpr const char* kKeys[] = {"dtype", "shape", "data_offsets"};
    if (!seen[i]) fail(ErrorKind::format, where, ": key is missing: ", kKeys[i]);
  }
  entries_.push_back(entry);
}

std::vector<std::int64_t> SafetensorsHeader::extents(const Entry& entry) {
  std::vector<std::int64_t> extents;
  parser_.seek(entry.shape_at);
  parser_.expect('[');
  if (parser_.take(']')) return extents;
  do extents.push_back(parser_.integer());
  while (parser_.take(','));
  return extents;
}

void SafetensorsHeader::check_names() const {
  const auto check = [&](auto views, const char* what) {
    std::sort(views.begin(), views.end());
    const auto twice = std::adjacent_find(views.begin(), views.end());
    if (twice != views.end()) fail(ErrorKind::format, where_, ": duplicate ", what, ": ", printable(*twice));
  };
  std::vector<std::string_view> names;
  names.reserve(entries_.size());
  for (const auto& entry : entries_) names.push_back(entry.name);
  check(std::move(names), "tensor name");
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : metadata_) keys.push_back(key);
  check(std::move(keys), "metadata key");
}

void SafetensorsHeader::check_size(const Entry& entry, std::int64_t data_size) {
  const auto shown = [&] {
    std::string text = "[";
    for (const std::int64_t extent : extents(entry)) text += cat(text.size() > 1 ? ", " : "", extent);
    return text + "]";
  };
  const auto where = [&] { return cat(where_, ": tensor ", printable(entry.name)); };
  const auto bytes = stored_size(entry.type, extents(entry));
  if (!bytes) fail(ErrorKind::format, where(), ": shape is too large: expected less than 2^63 bytes, got ", shown());
  if (entry.begin > entry.end)
    fail(ErrorKind::format, where(), ": data range is reversed: expected begin <= end, got [", entry.begin, ", ",
         entry.end, "]");
  if (entry.end - entry.begin != *bytes)
    fail(ErrorKind::format, where(), ": data range differs from type and shape: expected ", *bytes, " bytes for ",
         safetensors_dtype(entry.type), ' ', shown(), ", got ", entry.end - entry.begin);
  if (entry.end > data_size)
    fail(ErrorKind::format, where(), ": data range lies outside the file: expected an end <= ", data_size, ", got ",
         entry.end);
}

void SafetensorsHeader::check_ranges(std::int64_t data_size) const {
  std::vector<std::uint32_t> order(entries_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::pair(entries_[a].begin, entries_[a].end) < std::pair(entries_[b].begin, entries_[b].end);
  });
  std::int64_t filled = 0;
  for (const auto i : order) {
    const Entry& entry = entries_[i];
    if (entry.begin != filled)
      fail(ErrorKind::format, where_, ": tensor ", printable(entry.name), ": ",
           entry.begin < filled ? "data overlaps another tensor" : "a hole before its data", ": expected begin ",
           filled, ", got ", entry.begin);
    filled = entry.end;
  }
  if (filled != data_size)
    fail(ErrorKind::format, where_, ": bytes after the last tensor: expected ", filled, " bytes of data, got ",
         data_size);
}

}  // namespace taper::io
