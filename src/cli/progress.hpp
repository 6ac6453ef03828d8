#pragma once

#include <chrono>
#include <string>

#include "train/trainer.hpp"

namespace taper::cli {

/// How a training is shown on standard error.
enum class ProgressStyle { automatic, bar, line, none };

/// Automatic is a bar on a terminal that can move its cursor, else a line an epoch.
ProgressStyle resolve(ProgressStyle style);

/// Shows a training: a bar that is drawn at most ten times a second, or one line an epoch.
class Progress final : public train::Listener {
 public:
  explicit Progress(ProgressStyle style) : style_(resolve(style)) {}

  void on_start(const train::StartReport& report) override;
  void on_batch(const train::BatchReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_warning(const std::string& sentence) override;

  const std::string& run() const { return run_; }

 private:
  using Clock = std::chrono::steady_clock;

  ProgressStyle style_;
  std::string run_;
  std::int64_t epochs_ = 0, batches_ = 0, first_batch_ = 0;  ///< first: of this session, over all epochs
  Clock::time_point started_, drawn_;
  bool is_drawn_ = false;
};

/// "epoch 3/40 ████▌ 312/625 12.1k samples/s ETA 00:41 loss 0.412 acc 0.861 lr 1e-3", at most `width` columns: the bar
/// gives way first, then what stands on the right.
std::string bar_line(const train::BatchReport& report, std::int64_t epochs, double seconds_left, std::size_t width);

}  // namespace taper::cli
