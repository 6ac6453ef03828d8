#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace taper::train {

/// The best value of one column so far, and since when there was no better one.
struct Best {
  std::optional<double> value;
  std::int64_t epoch = 0;   ///< from 1; 0: none yet
  std::int64_t waited = 0;  ///< epochs since then

  /// Takes the value of an epoch; whether it is the best so far, by more than `min_delta`. A value that is not finite
  /// never is, and equal values leave the first one the best.
  bool offer(double offered, std::int64_t at_epoch, bool larger, double min_delta = 0) {
    const bool better =
        std::isfinite(offered) && (!value || (larger ? offered > *value + min_delta : offered < *value - min_delta));
    if (better) {
      value = offered;
      epoch = at_epoch;
      waited = 0;
    } else {
      ++waited;
    }
    return better;
  }
};

}  // namespace taper::train
