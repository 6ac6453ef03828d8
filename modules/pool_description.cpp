#include "taper/nn/pool_description.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "pool_geometry.hpp"

namespace taper::nn {

namespace {

constexpr std::int64_t kMostWindows = 1'000'000;
constexpr std::size_t kShown = 64;

/// Elements that window `i` shares with the one before: its taps but the last stride / dilation ones, if the two step
/// on the same positions at all.
std::int64_t shared_with_previous(const Window1d& w, std::int64_t length, std::int64_t i) {
  if (i == 0 || w.stride % w.dilation != 0 || w.stride / w.dilation >= w.kernel) return 0;
  Window1d common = w;
  common.kernel -= w.stride / w.dilation;
  const IndexRange taps = taps_between(common, i * w.stride - w.padding_left, 0, length);
  return taps.last - taps.first;
}

PoolWindow sliding_window(const Window1d& w, std::int64_t length, std::int64_t i, bool count_include_pad) {
  const WindowBounds bounds = window_bounds(w, length, i);
  PoolWindow window{.start = bounds.start, .end = bounds.end};
  window.elements = counted_taps(w, length, i, false);
  window.padding = counted_taps(w, length, i, true) - window.elements;
  window.divisor = window.elements + (count_include_pad ? window.padding : 0);
  window.overlap = shared_with_previous(w, length, i);
  return window;
}

void check_count(const char* where, std::int64_t windows) {
  if (windows > kMostWindows)
    fail(ErrorKind::shape, where, ": too many windows to describe: expected <= ", kMostWindows, ", got ", windows);
}

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// Columns as wide as their widest cell, right-aligned, two spaces apart.
class Table {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string to_string() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_)
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (c == widths.size()) widths.push_back(0);
        widths[c] = std::max(widths[c], row[c].size());
      }
    std::string text;
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) text += (c > 0 ? "  " : "") + padded(row[c], widths[c]);
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string table_of(const std::vector<PoolWindow>& windows, bool with_divisor) {
  Table table;
  const auto add = [&](std::string i, std::string at, std::string elements, std::string padding, std::string divisor,
                       std::string overlap) {
    std::vector<std::string> row = {i, at, elements, padding, divisor, overlap};
    if (!with_divisor) row.erase(row.begin() + 4);
    table.add(std::move(row));
  };
  add("window", "positions", "elements", "padding", "divisor", "overlap");
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (windows.size() > kShown && i == kShown / 2) {
      add("...", "", "", "", "", "");
      i = windows.size() - kShown / 2;
    }
    const PoolWindow& w = windows[i];
    add(cat(i), cat('[', w.start, ", ", w.end, ')'), cat(w.elements), cat(w.padding), cat(w.divisor),
        i == 0 ? "-" : cat(w.overlap));
  }
  return table.to_string();
}

/// How the divisors come about, as a line; nothing for pools that do not divide.
std::string divisor_rule(const PoolDescription& pool) {
  if (!pool.averages) return "";
  std::string text;
  if (pool.divisor_override)
    text = cat("divisor ", *pool.divisor_override, " for every window");
  else
    text = cat("padding ", pool.count_include_pad ? "counts" : "does not count", " in the divisor",
               pool.dimensions.size() > 1 ? ", which is the product over the dimensions" : "");
  return text + (pool.multiplier != 1 ? cat("; times ", pool.multiplier) : "") + "\n";
}

}  // namespace

std::int64_t PoolDescription::divisor(std::initializer_list<std::int64_t> output) const {
  if (output.size() != dimensions.size())
    fail(ErrorKind::shape, "divisor: one index for each spatial dimension: expected ", dimensions.size(), ", got ",
         output.size());
  std::int64_t product = 1;
  auto index = output.begin();
  for (const PoolDimension& dimension : dimensions) {
    const auto i = *index++;
    if (i < 0 || i >= std::int64_t(dimension.windows.size()))
      fail(ErrorKind::shape, "divisor: no such output: expected an index below ", dimension.windows.size(), ", got ",
           i);
    product *= dimension.windows[std::size_t(i)].divisor;
  }
  return divisor_override.value_or(product);
}

std::string PoolDescription::to_string() const {
  std::string text = layer + "\n" + divisor_rule(*this);
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const PoolDimension& dimension = dimensions[d];
    text += cat(dimensions.size() > 1 ? cat("dimension ", d, ": ") : "", "input ", dimension.input, ", output ",
                dimension.windows.size(), ", dropped ", dimension.dropped, "\n");
    text += table_of(dimension.windows, averages && !divisor_override);
  }
  return text;
}

PoolDescription describe_sliding(PoolDescription&& head, const char* where, std::span<const Window1d> windows,
                                 WindowKind kind, std::span<const std::int64_t> input) {
  std::vector<std::int64_t> outputs(input.size());
  output_size(where, windows, kind, input, outputs);
  for (std::size_t d = 0; d < input.size(); ++d) {
    check_count(where, outputs[d]);
    PoolDimension& dimension = head.dimensions.emplace_back(PoolDimension{.input = input[d]});
    for (std::int64_t i = 0; i < outputs[d]; ++i)
      dimension.windows.push_back(sliding_window(windows[d], input[d], i, head.count_include_pad));
    std::int64_t reached = 0;
    for (const PoolWindow& window : dimension.windows) {
      const IndexRange taps = taps_between(windows[d], window.start, 0, input[d]);
      if (window.elements > 0) reached = std::max(reached, window.start + (taps.last - 1) * windows[d].dilation + 1);
    }
    dimension.dropped = input[d] - reached;
  }
  return std::move(head);
}

PoolDescription describe_adaptive(PoolDescription&& head, const char* where, std::span<const std::int64_t> input,
                                  std::span<const std::int64_t> output) {
  check_adaptive(where, output);
  check_adaptive_input(where, input);
  for (std::size_t d = 0; d < input.size(); ++d) {
    check_count(where, output[d]);
    PoolDimension& dimension = head.dimensions.emplace_back(PoolDimension{.input = input[d]});
    std::int64_t before = 0;
    for (std::int64_t i = 0; i < output[d]; ++i) {
      const WindowBounds bounds = adaptive_bounds(input[d], output[d], i);
      const std::int64_t elements = bounds.last - bounds.first;
      dimension.windows.push_back({.start = bounds.first,
                                   .end = bounds.last,
                                   .elements = elements,
                                   .divisor = elements,
                                   .overlap = before - bounds.first});
      before = bounds.last;
    }
    dimension.dropped = input[d] - before;
  }
  return std::move(head);
}

}  // namespace taper::nn
