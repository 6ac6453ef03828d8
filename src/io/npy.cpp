#include "io/npy.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "io/elements.hpp"
#include "io/printable.hpp"
#include "io/safe_file.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

namespace taper::io {

namespace {

constexpr std::int64_t kMaxNpyHeader = 65535;

struct NpyLayout {
  Stored type = Stored::f32;
  bool swapped = false, fortran_order = false;
  std::vector<std::int64_t> extents;
};

/// The Python dictionary literal of a header: exactly the keys descr, fortran_order and shape, in any order.
class NpyHeader {
 public:
  NpyHeader(const std::string& where, std::string_view text) : where_(where), text_(text) {}

  NpyLayout parse() {
    bool seen[3] = {};
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0)
        fail(ErrorKind::format, where_, ": unknown key in the header: expected descr, fortran_order or shape, got ",
             printable(key));
      if (std::exchange(seen[which], true)) fail(ErrorKind::format, where_, ": duplicate key in the header: ", key);
      expect(':');
      if (which == 0) descr();
      if (which == 1) layout_.fortran_order = boolean();
      if (which == 2) shape();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    for (int i = 0; i < 3; ++i) {
      constexpr const char* kKeys[] = {"descr", "fortran_order", "shape"};
      if (!seen[i]) fail(ErrorKind::format, where_, ": key is missing in the header: ", kKeys[i]);
    }
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    if (at_ < text_.size()) fail_expected("only spaces and one line feed after the last brace");
    return layout_;
  }

 private:
  [[noreturn]] void fail_expected(std::string_view expected) const {
    fail(ErrorKind::format, where_, ": header byte ", at_, ": expected ", expected, ", got ",
         at_ < text_.size() ? cat('\'', printable(text_.substr(at_, 1)), '\'') : "the end");
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail_expected(cat('\'', c, '\''));
  }
  std::string_view string() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"' && !take('"')) fail_expected("a string");
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail_expected("a closing quote");
    const std::string_view value = text_.substr(at_, end - at_);
    if (value.find('\\') != std::string_view::npos) fail_expected("a string without escapes");
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    fail_expected("True or False");
  }
  std::int64_t integer() {
    skip_space();
    const std::size_t start = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto tens = checked::mul(value, 10);
      const auto next = tens ? checked::add(*tens, text_[at_] - '0') : std::nullopt;
      if (!next) fail_expected("an integer below 2^63");
      value = *next;
    }
    if (at_ == start) fail_expected("an integer from 0");
    return value;
  }
  void shape() {
    expect('(');
    if (take(')')) return;
    while (true) {
      if (layout_.extents.size() == Shape::kMaxRank)
        fail(ErrorKind::format, where_, ": too many dimensions: expected at most ", Shape::kMaxRank);
      layout_.extents.push_back(integer());
      // A number in parentheses is a tuple only with a comma.
      if (layout_.extents.size() == 1) {
        expect(',');
      } else if (!take(',')) {
        break;
      }
      if (take(')')) return;
    }
    expect(')');
  }

  void descr() {
    if (take('[')) refuse_descr("a record");
    const std::string_view text = string();
    struct Known {
      std::string_view code;
      Stored type;
    };
    constexpr Known kKnown[] = {{"f8", Stored::f64}, {"f4", Stored::f32}, {"f2", Stored::f16}, {"i8", Stored::i64},
                                {"i4", Stored::i32}, {"i2", Stored::i16}, {"i1", Stored::i8},  {"u8", Stored::u64},
                                {"u4", Stored::u32}, {"u2", Stored::u16}, {"u1", Stored::u8},  {"b1", Stored::boolean}};
    const char order = text.empty() ? '?' : text[0];
    const std::string_view code = text.substr(std::min<std::size_t>(1, text.size()));
    for (const auto& known : kKnown) {
      if (known.code != code) continue;
      const bool has_order = order == '<' || order == '>' || (order == '|' && size_of(known.type) == 1);
      if (!has_order) break;
      layout_.type = known.type;
      layout_.swapped = order == '>';
      return;
    }
    switch (code.empty() ? '?' : code[0]) {
      case 'O':
        refuse_descr(cat(printable(text), " (Python objects)"));
      case 'U':
      case 'S':
        refuse_descr(cat(printable(text), " (text)"));
      case 'c':
        refuse_descr(cat(printable(text), " (complex numbers)"));
      case 'M':
      case 'm':
        refuse_descr(cat(printable(text), " (dates)"));
      default:
        refuse_descr(printable(text));
    }
  }
  [[noreturn]] void refuse_descr(std::string_view what) const {
    fail(ErrorKind::format, where_,
         ": element type is not read: expected f8, f4, f2, i8, i4, i2, i1, u8, u4, u2, u1 or b1, got ", what);
  }

  const std::string& where_;
  std::string_view text_;
  std::size_t at_ = 0;
  NpyLayout layout_;
};

/// Copies elements stored with the first dimension fastest into row-major order.
template <class T>
void from_fortran(const T* in, T* out, const Shape& shape) {
  std::int64_t index[Shape::kMaxRank] = {}, stride[Shape::kMaxRank] = {};
  std::int64_t step = 1, from = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    stride[d] = step;
    step *= shape[d];
  }
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    out[i] = in[from];
    for (int d = shape.rank() - 1; d >= 0; --d) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

Tensor from_fortran(const Tensor& stored) {
  const Tensor tensor = empty_like(stored);
  switch (stored.dtype()) {
    case DType::float32:
      from_fortran(stored.data<float>(), tensor.data<float>(), stored.shape());
      break;
    case DType::float64:
      from_fortran(stored.data<double>(), tensor.data<double>(), stored.shape());
      break;
    case DType::int64:
      from_fortran(stored.data<std::int64_t>(), tensor.data<std::int64_t>(), stored.shape());
      break;
  }
  return tensor;
}

/// Reads up to the elements; the reader is checked before every step.
std::string read_header(ByteReader& reader, const std::string& where) {
  const auto need = [&](std::int64_t n) {
    if (reader.remaining() < n)
      fail(ErrorKind::format, where, ": file is cut in its header: expected at least ", n, " more bytes, got ",
           reader.remaining());
  };
  char start[8];
  need(sizeof start);
  reader.read(start, sizeof start);
  if (std::string_view(start, 6) != kNpyMagic)
    fail(ErrorKind::format, where, ": not an NPY file: its first bytes differ");
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0)
    fail(ErrorKind::format, where, ": NPY version is not read: expected 1.0, 2.0 or 3.0, got ", major, '.', minor);
  unsigned char digits[4] = {};
  const std::size_t width = major == 1 ? 2 : 4;
  need(std::int64_t(width));
  reader.read(digits, width);
  const std::int64_t length = digits[0] | digits[1] << 8 | digits[2] << 16 | std::int64_t{digits[3]} << 24;
  if (length > kMaxNpyHeader)
    fail(ErrorKind::format, where, ": header is too long: expected at most ", kMaxNpyHeader, " bytes, got ", length);
  need(length);
  std::string header(std::size_t(length), '\0');
  reader.read(header.data(), header.size());
  return header;
}

Tensor read_whole(const ByteSource& source) {
  SourceReader reader(source);
  return read_npy(reader, source.name());
}

}  // namespace

Tensor read_npy(ByteReader& reader, const std::string& where) {
  const std::string header = read_header(reader, where);
  const NpyLayout layout = NpyHeader(where, header).parse();
  const auto expected = stored_size(layout.type, layout.extents);
  if (!expected) fail(ErrorKind::format, where, ": shape is too large: expected less than 2^63 bytes");
  if (reader.remaining() != *expected)
    fail(ErrorKind::format, where, ": ", reader.remaining() < *expected ? "file is cut" : "bytes after the array",
         ": expected ", *expected, " bytes of elements, got ", reader.remaining());
  const Shape shape(layout.extents);
  const Tensor tensor = read_elements(reader, layout.type, layout.swapped, shape, where);
  return layout.fortran_order && shape.rank() > 1 ? from_fortran(tensor) : tensor;
}

std::string npy_header(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  constexpr const char* kDescr[kDTypeCount] = {"<f4", "<f8", "<i8"};
  std::string text = cat("{'descr': '", kDescr[int(tensor.dtype())], "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < shape.rank(); ++i)
    text += cat(i > 0 ? " " : "", shape[i], i == 0 || i + 1 < shape.rank() ? "," : "");
  text += "), }";
  // NumPy leaves room for the first extent to grow to 21 digits.
  if (shape.rank() > 0) text.append(21 - cat(shape[0]).size(), ' ');
  const std::size_t before = kNpyMagic.size() + 4, unpadded = before + text.size() + 1;
  text.append((64 - unpadded % 64) % 64, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header += {'\x01', '\x00', char(text.size() & 255), char(text.size() >> 8)};
  return header + text;
}

Tensor load_npy(const std::string& path) { return read_whole(ByteSource(path)); }

Tensor npy_from_bytes(std::string_view bytes, const std::string& name) { return read_whole(ByteSource(name, bytes)); }

void save_npy(const std::string& path, const Tensor& tensor) {
  const std::string header = npy_header(tensor);
  const std::string_view parts[] = {header, bytes_of(tensor)};
  write_file(path, parts);
}

std::string npy_to_bytes(const Tensor& tensor) { return npy_header(tensor) + std::string(bytes_of(tensor)); }

}  // namespace taper::io
