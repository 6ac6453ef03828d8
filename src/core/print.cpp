#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>

#include "base/fail.hpp"
#include "core/dispatch.hpp"
#include "core/node.hpp"
#include "taper/tensor.hpp"

// The printed form of a tensor, by the rules of PyTorch's `torch._tensor_str`.
namespace taper {

namespace {

constexpr int kPrecision = 4;
constexpr std::int64_t kLineWidth = 80, kThreshold = 1000, kEdgeItems = 3;
constexpr std::string_view kPrefix = "tensor(";

std::string formatted(double value, std::chars_format format, int precision) {
  if (std::isnan(value)) return "nan";
  char digits[400];  // the largest double has 309 digits
  return {digits, std::to_chars(digits, digits + sizeof digits, value, format, precision).ptr};
}

/// How all elements of one tensor are written, so that they stand in columns.
class NumberFormat {
 public:
  void see(std::int64_t value) { widen(cat(value)); }
  /// Only finite numbers other than 0 decide; they are seen twice, first for the style, then for the width.
  void see_style(double value) {
    if (!decides(value)) return;
    min_ = std::min(min_, std::abs(value));
    max_ = std::max(max_, std::abs(value));
    whole_ &= value == std::ceil(value);
  }
  void see_width(double value) {
    if (decides(value)) widen(written(value));
  }

  std::string padded(std::int64_t value) const { return pad(cat(value)); }
  std::string padded(double value) const { return pad(written(value)); }
  std::int64_t width() const { return width_; }

 private:
  static bool decides(double value) { return std::isfinite(value) && value != 0; }
  bool scientific() const { return max_ > 0 && (max_ / min_ > 1000 || max_ > 1e8 || (!whole_ && min_ < 1e-4)); }
  std::string written(double value) const {
    if (scientific()) return formatted(value, std::chars_format::scientific, kPrecision);
    if (!whole_) return formatted(value, std::chars_format::fixed, kPrecision);
    return formatted(value, std::chars_format::fixed, 0) + (std::isfinite(value) ? "." : "");
  }
  void widen(const std::string& text) { width_ = std::max(width_, std::int64_t(text.size())); }
  std::string pad(const std::string& text) const {
    return std::string(std::size_t(std::max<std::int64_t>(width_ - std::int64_t(text.size()), 0)), ' ') + text;
  }

  bool whole_ = true;
  double min_ = std::numeric_limits<double>::infinity(), max_ = 0;
  std::int64_t width_ = 1;
};

/// The elements of one tensor as nested brackets; long ones lose their middle.
template <class T>
class Printer {
 public:
  Printer(const T* data, const Shape& shape) : data_(data), shape_(shape), elided_(shape.numel() > kThreshold) {
    std::int64_t stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      strides_[d] = stride;
      stride *= shape[d];
    }
    if (shape.numel() == 0) return;
    if constexpr (std::is_integral_v<T>) {
      for_each_shown(0, 0, [&](T value) { format_.see(value); });
    } else {
      for_each_shown(0, 0, [&](T value) { format_.see_style(double(value)); });
      for_each_shown(0, 0, [&](T value) { format_.see_width(double(value)); });
    }
  }

  std::string text() const {
    if (shape_.numel() == 0) return "[]";
    return shape_.rank() == 0 ? element(0) : list(0, 0, std::int64_t(kPrefix.size()));
  }

 private:
  bool loses_middle(int dim) const { return elided_ && shape_[dim] > 2 * kEdgeItems; }
  /// The position after `i` that is shown.
  std::int64_t after(int dim, std::int64_t i) const {
    return loses_middle(dim) && i + 1 == kEdgeItems ? shape_[dim] - kEdgeItems : i + 1;
  }

  template <class Body>
  void for_each_shown(int dim, std::int64_t offset, const Body& body) const {
    if (dim == shape_.rank()) return body(data_[offset]);
    for (std::int64_t i = 0; i < shape_[dim]; i = after(dim, i))
      for_each_shown(dim + 1, offset + i * strides_[dim], body);
  }

  std::string element(std::int64_t offset) const {
    if constexpr (std::is_integral_v<T>)
      return format_.padded(std::int64_t(data_[offset]));
    else
      return format_.padded(double(data_[offset]));
  }

  std::string list(int dim, std::int64_t offset, std::int64_t indent) const {
    const bool innermost = dim == shape_.rank() - 1;
    std::vector<std::string> items;
    for (std::int64_t i = 0; i < shape_[dim]; i = after(dim, i)) {
      if (loses_middle(dim) && i == shape_[dim] - kEdgeItems) items.push_back(innermost ? " ..." : "...");
      const std::int64_t at = offset + i * strides_[dim];
      items.push_back(innermost ? element(at) : list(dim + 1, at, indent + 1));
    }
    const std::string margin(std::size_t(indent) + 1, ' ');
    if (!innermost) {
      const std::string breaks(std::size_t(shape_.rank() - dim - 1), '\n');
      return cat('[', joined(items, cat(',', breaks, margin)), ']');
    }
    const auto per_line = std::size_t(std::max<std::int64_t>(1, (kLineWidth - indent) / (format_.width() + 2)));
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < items.size(); i += per_line)
      lines.push_back(joined(std::span(items).subspan(i, std::min(per_line, items.size() - i)), ", "));
    return cat('[', joined(lines, cat(",\n", margin)), ']');
  }

  static std::string joined(std::span<const std::string> items, const std::string& separator) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) out.append(i > 0 ? separator : "").append(items[i]);
    return out;
  }

  const T* data_;
  const Shape& shape_;
  bool elided_;
  std::int64_t strides_[Shape::kMaxRank] = {};
  NumberFormat format_;
};

std::string tuple_of(const Shape& shape) {
  std::string out = to_string(shape);
  out.front() = '(';
  out.back() = ')';
  return out;
}

/// What stands behind the elements: whatever they do not show themselves.
std::vector<std::string> suffixes_of(const Tensor& x) {
  std::vector<std::string> suffixes;
  const bool empty = x.numel() == 0;
  if (empty && x.dim() != 1) suffixes.push_back("size=" + tuple_of(x.shape()));
  if (x.dtype() == DType::float64 || (empty && x.dtype() != DType::float32))
    suffixes.push_back(cat("dtype=", x.dtype()));
  if (x.requires_grad())
    suffixes.push_back(x.is_leaf() ? "requires_grad=True" : cat("grad_fn=<", x.impl()->node->op->name, '>'));
  return suffixes;
}

}  // namespace

std::string Tensor::to_string() const {
  const std::string elements =
      visit_dtype(dtype(), [&]<class T>(Type<T>) { return Printer<T>(data<T>(), shape()).text(); });
  std::string out = cat(kPrefix, elements);
  std::size_t line = out.size() - (out.rfind('\n') + 1) + 2;
  for (const std::string& suffix : suffixes_of(*this)) {
    if (line + suffix.size() + 2 > std::size_t(kLineWidth)) {
      out += cat(",\n", std::string(kPrefix.size(), ' '), suffix);
      line = kPrefix.size() + suffix.size();
    } else {
      out += cat(", ", suffix);
      line += suffix.size() + 2;
    }
  }
  out += ')';
  return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.to_string(); }

}  // namespace taper
