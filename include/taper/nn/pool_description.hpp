#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

/// What a pooling layer does to an input of given extents, window by window. Every pooling layer answers
/// `layer.describe(13)`, or `layer.describe({5, 7})` with one extent for each spatial dimension; `to_string()` of the
/// answer is a table to read. How the layers fill it in: modules/pool_geometry.hpp.
namespace taper::nn {

/// One window along one dimension. Positions count from the input's first element: negative ones and those from the
/// input's extent on are padding.
struct PoolWindow {
  std::int64_t start = 0,
               end = 0;       ///< [start, end) holds the window's elements and padding; nothing behind the padding
  std::int64_t elements = 0;  ///< of the input
  std::int64_t padding = 0;   ///< positions in the padding
  std::int64_t divisor = 0;   ///< what this dimension gives to the divisor: elements, and padding where it counts
  std::int64_t overlap = 0;   ///< elements of the input that the window before holds too
};

/// All windows along one spatial dimension.
struct PoolDimension {
  std::int64_t input = 0;
  std::int64_t dropped = 0;  ///< elements behind the last window's
  std::vector<PoolWindow> windows = {};
};

struct PoolDescription {
  std::string layer;                                  ///< as it prints itself, with every option
  bool averages = true;                               ///< false: windows are not divided, the columns stay empty
  bool count_include_pad = true;                      ///< whether padding counts in the divisor
  std::optional<std::int64_t> divisor_override = {};  ///< the divisor of all windows, if given
  double multiplier = 1;  ///< what an average is multiplied by (LPPool: the kernel's volume)
  std::vector<PoolDimension> dimensions = {};

  /// What the window of an output is divided by: `divisor({1, 0})` for row 1, column 0.
  /// Errors: `ErrorKind::shape` for an output that is not there.
  std::int64_t divisor(std::initializer_list<std::int64_t> output) const;
  /// A table for each dimension; of more than 64 windows it leaves out those in the middle.
  std::string to_string() const;
};

}  // namespace taper::nn

#pragma GCC visibility pop
