#include "io/elements.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "io/checksum.hpp"
#include "taper/creation.hpp"

namespace taper::io {

static_assert(std::endian::native == std::endian::little, "files are read into memory as they are");

namespace {

/// IEEE 754 binary16: sign, 5 bits of exponent with bias 15, 10 bits of fraction.
float from_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u,
                      fraction = bits & 0x3FFu;
  if (exponent == 0) return std::copysign(std::ldexp(float(fraction), -24), std::bit_cast<float>(sign));
  const std::uint32_t widened = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (widened << 23) | (fraction << 13));
}

float from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

template <class Raw>
Raw load(const char* bytes, bool swapped) {
  Raw raw;
  std::memcpy(&raw, bytes, sizeof raw);
  if (!swapped) return raw;
  char reversed[sizeof raw];
  std::reverse_copy(bytes, bytes + sizeof raw, reversed);
  std::memcpy(&raw, reversed, sizeof raw);
  return raw;
}

/// Turns `n` stored elements into `out`.
template <class Raw, class Out, class Convert>
void decode(const char* in, std::int64_t n, bool swapped, Out* out, Convert convert) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = convert(load<Raw>(in + i * std::int64_t(sizeof(Raw)), swapped));
}

void decode(Stored type, bool swapped, const char* in, std::int64_t n, void* out, const std::string& where) {
  auto* floats = static_cast<float*>(out);
  auto* integers = static_cast<std::int64_t*>(out);
  const auto same = [](auto raw) { return raw; };
  const auto widen = [](auto raw) { return std::int64_t(raw); };
  switch (type) {
    case Stored::f16:
      return decode<std::uint16_t>(in, n, swapped, floats, from_half);
    case Stored::bf16:
      return decode<std::uint16_t>(in, n, swapped, floats, from_bfloat);
    case Stored::f32:
      return decode<float>(in, n, swapped, floats, same);
    case Stored::f64:
      return decode<double>(in, n, swapped, static_cast<double*>(out), same);
    case Stored::i64:
      return decode<std::int64_t>(in, n, swapped, integers, same);
    case Stored::i8:
      return decode<std::int8_t>(in, n, swapped, integers, widen);
    case Stored::i16:
      return decode<std::int16_t>(in, n, swapped, integers, widen);
    case Stored::i32:
      return decode<std::int32_t>(in, n, swapped, integers, widen);
    case Stored::u8:
      return decode<std::uint8_t>(in, n, swapped, integers, widen);
    case Stored::u16:
      return decode<std::uint16_t>(in, n, swapped, integers, widen);
    case Stored::u32:
      return decode<std::uint32_t>(in, n, swapped, integers, widen);
    case Stored::u64:
      return decode<std::uint64_t>(in, n, swapped, integers, [&](std::uint64_t raw) {
        if (raw > std::uint64_t(INT64_MAX))
          fail(ErrorKind::format, where, ": an unsigned integer does not fit int64: expected <= ", INT64_MAX, ", got ",
               raw);
        return std::int64_t(raw);
      });
    case Stored::boolean:
      return decode<std::uint8_t>(in, n, swapped, integers, [](auto raw) { return std::int64_t(raw != 0); });
  }
}

char* data_of(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::float32:
      return reinterpret_cast<char*>(tensor.data<float>());
    case DType::float64:
      return reinterpret_cast<char*>(tensor.data<double>());
    default:
      return reinterpret_cast<char*>(tensor.data<std::int64_t>());
  }
}

}  // namespace

std::optional<std::int64_t> stored_size(Stored type, std::span<const std::int64_t> extents) {
  std::optional<std::int64_t> bytes = size_of(type);
  bool is_empty = false;
  for (const std::int64_t extent : extents) {
    is_empty |= extent == 0;
    if (extent != 0 && bytes) bytes = checked::mul(*bytes, extent);
  }
  return is_empty && bytes ? 0 : bytes;
}

Tensor read_elements(ByteReader& reader, Stored type, bool swapped, const Shape& shape, const std::string& where,
                     std::uint32_t* crc) {
  const Tensor tensor = empty(shape, read_as(type));
  const std::int64_t in_size = size_of(type), out_size = std::int64_t(size_of(tensor.dtype()));
  char chunk[1 << 15];
  char* out = data_of(tensor);
  // Chunks keep the bytes in cache between checksum and conversion, and the memory at that of the result.
  for (std::int64_t left = shape.numel(); left > 0;) {
    const std::int64_t n = std::min<std::int64_t>(left, std::int64_t(sizeof chunk) / in_size);
    const std::string_view bytes(chunk, std::size_t(n * in_size));
    reader.read(chunk, bytes.size());
    if (crc) *crc = crc32(bytes, *crc);
    decode(type, swapped, chunk, n, out, where);
    out += n * out_size;
    left -= n;
  }
  return tensor;
}

std::string_view bytes_of(const Tensor& tensor) {
  return {data_of(tensor), std::size_t(tensor.numel()) * size_of(tensor.dtype())};
}

}  // namespace taper::io
