#include "base/fail.hpp"

#include <cstdarg>

#include <charconv>

namespace taper::detail {

namespace {

template <class T>
void append(std::string& out, T number) {
  char digits[40];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

std::string join(std::uint64_t kinds, std::va_list parts) {
  std::string out;
  for (; kinds != 0; kinds >>= 4) switch (PartKind(kinds & 15)) {
      case PartKind::end:
        break;
      case PartKind::literal:
        out += va_arg(parts, const char*);
        break;
      case PartKind::string:
        out += *va_arg(parts, const std::string*);
        break;
      case PartKind::view:
        out += *va_arg(parts, const std::string_view*);
        break;
      case PartKind::character:
        out += char(va_arg(parts, int));
        break;
      case PartKind::flag:
        out += va_arg(parts, int) ? "true" : "false";
        break;
      case PartKind::integer:
        append(out, va_arg(parts, std::int64_t));
        break;
      case PartKind::natural:
        append(out, va_arg(parts, std::uint64_t));
        break;
      case PartKind::single:
        append(out, float(va_arg(parts, double)));
        break;
      case PartKind::real:
        append(out, va_arg(parts, double));
        break;
      case PartKind::shape:
        out += to_string(*va_arg(parts, const Shape*));
        break;
      case PartKind::dtype:
        out += name_of(DType(va_arg(parts, int)));
        break;
    }
  return out;
}

}  // namespace

std::string join_parts(std::uint64_t kinds, ...) {
  std::va_list parts;
  va_start(parts, kinds);
  std::string out = join(kinds, parts);
  va_end(parts);
  return out;
}

void fail_parts(ErrorKind kind, std::uint64_t kinds, ...) {
  std::va_list parts;
  va_start(parts, kinds);
  const std::string sentence = join(kinds, parts);
  va_end(parts);
  throw Error(kind, sentence);
}

}  // namespace taper::detail
