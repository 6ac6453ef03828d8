#include "cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/fail.hpp"
#include "cli/output.hpp"

namespace taper::cli {

namespace {

constexpr std::chrono::milliseconds kBetweenDrawings{100};

std::size_t terminal_width() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// "12.1k".
std::string rate_text(double rate) {
  if (rate >= 1e6) return number("%.1fM", rate / 1e6);
  return rate >= 1e3 ? number("%.1fk", rate / 1e3) : number("%.0f", rate);
}

/// "1e-3", "0.002".
std::string lr_text(double lr) {
  std::string text = number("%.3g", lr);
  const double exponent = lr > 0 ? std::log10(lr) : 0;
  if (lr > 0 && lr < 1 && std::abs(exponent - std::round(exponent)) < 1e-9)
    text = number("1e%.0f", std::round(exponent));
  return text;
}

/// "00:41", "1:02:03".
std::string time_text(double seconds) {
  if (!(seconds < 1e6)) return "--:--";
  const auto s = static_cast<long long>(seconds);
  char text[40];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%02lld:%02lld", s / 60, s % 60);
  return text;
}

/// `share` of `cells` cells, in eighths.
std::string bar(double share, std::size_t cells) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = std::size_t(std::clamp(share, 0.0, 1.0) * double(cells) * 8);
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  const std::size_t drawn = eighths / 8 + (eighths % 8 > 0 ? 1 : 0);
  return text + std::string(cells - drawn, ' ');
}

/// "acc" for "accuracy": lines are short.
std::string short_name(const std::string& column) {
  const std::size_t at = column.find("accuracy");
  return at == std::string::npos ? column : column.substr(0, at) + "acc";
}

}  // namespace

ProgressStyle resolve(ProgressStyle style) {
  if (style != ProgressStyle::automatic) return style;
  const char* term = std::getenv("TERM");
  const bool can_draw = ::isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
  return can_draw ? ProgressStyle::bar : ProgressStyle::line;
}

std::string bar_line(const train::BatchReport& report, std::int64_t epochs, double seconds_left, std::size_t width) {
  constexpr std::size_t kCells = 20;
  const std::string head = cat("epoch ", report.epoch, '/', epochs, ' ');
  std::vector<std::string> parts{cat(report.batch, '/', report.batches),
                                 rate_text(report.samples_per_second) + " samples/s", "ETA " + time_text(seconds_left),
                                 "loss " + number("%.3f", report.loss)};
  if (!std::isnan(report.accuracy)) parts.push_back("acc " + number("%.3f", report.accuracy));
  parts.push_back("lr " + lr_text(report.lr));
  std::string tail;
  for (const std::string& part : parts) {
    if (head.size() + tail.size() + 1 + part.size() > width) break;
    tail += (tail.empty() ? "" : " ") + part;
  }
  const std::size_t taken = head.size() + tail.size() + 1;
  const std::size_t cells = width > taken ? std::min(kCells, width - taken) : 0;
  if (cells < 4) return head + tail;
  return cat(head, bar(double(report.batch) / double(std::max<std::int64_t>(1, report.batches)), cells), ' ', tail);
}

void Progress::on_start(const train::StartReport& report) {
  run_ = report.run;
  epochs_ = report.epochs;
  batches_ = report.batches;
  first_batch_ = report.first_epoch * report.batches + report.first_batch;
  started_ = Clock::now();
  if (style_ == ProgressStyle::none) return;
  say(cat(report.run, ": ", report.parameters, " parameters, ", report.train_samples, " training samples, ",
          report.validation_samples, " for validation\n"));
  if (report.first_epoch + report.first_batch > 0)
    say(cat("goes on after epoch ", report.first_epoch, ", batch ", report.first_batch, " of ", report.batches, "\n"));
}

void Progress::on_batch(const train::BatchReport& report) {
  if (style_ != ProgressStyle::bar) return;
  const auto now = Clock::now();
  if (is_drawn_ && now - drawn_ < kBetweenDrawings) return;
  drawn_ = now;
  is_drawn_ = true;
  const std::int64_t done = (report.epoch - 1) * batches_ + report.batch;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const double left = seconds / double(std::max<std::int64_t>(1, done - first_batch_)) *
                      double(std::max<std::int64_t>(0, epochs_ * batches_ - done));
  say(cat("\r\x1b[K", bar_line(report, epochs_, left, terminal_width() - 1)));
}

void Progress::on_epoch(const train::EpochReport& report) {
  if (style_ == ProgressStyle::none) return;
  std::string line = cat(style_ == ProgressStyle::bar ? "\r\x1b[K" : "", "epoch ", report.epoch, '/', report.epochs);
  for (std::size_t i = 0; i < report.columns.size(); ++i) {
    const std::string& column = report.columns[i];
    if (column == "epoch") continue;
    const std::string name = column.starts_with("train_") ? column.substr(6) : column;
    line +=
        cat(' ', short_name(name), ' ', column == "lr" ? lr_text(report.values[i]) : number("%.4f", report.values[i]));
  }
  say(cat(line, ' ', number("%.1f", report.seconds), " s\n"));
}

void Progress::on_warning(const std::string& sentence) {
  if (style_ != ProgressStyle::none)
    say(cat(style_ == ProgressStyle::bar ? "\r\x1b[K" : "", "warning: ", sentence, "\n"));
}

}  // namespace taper::cli
