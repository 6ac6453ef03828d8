#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taper::train {

/// The folder of one run. Its lock is held as long as the object lives, so that two runs never write into one folder.
///
/// Errors of everything here: `ErrorKind::io`, `path: what failed: <the system's reason>; <what to do>`.
class RunDirectory {
 public:
  /// `root/name/0001`, or the next number that is free; `root/name/latest` becomes a link to it.
  static RunDirectory create(const std::string& name, const std::string& root = "runs");
  /// `path` itself. Unless `force` is given it must not exist or be empty; with it, the files of an older run there
  /// are removed, but no others.
  static RunDirectory create_at(const std::string& path, bool force = false);
  /// A run that exists, to resume it. Temporary files that a killed run left are removed.
  static RunDirectory open(const std::string& path);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string last() const { return file("checkpoints/last.safetensors"); }
  std::string best() const { return file("checkpoints/best.safetensors"); }

  /// Replaces a text file, all or nothing.
  void write(std::string_view name, std::string_view text) const;
  /// Adds a line to a text file.
  void append(std::string_view name, std::string_view line) const;
  /// Starts metrics.csv with its header, or keeps the header and the rows of the first `epochs` epochs: a run that was
  /// killed may have written rows its checkpoint does not know of.
  /// Errors also: `ErrorKind::config` when there is another header.
  void start_metrics(const std::vector<std::string>& columns, std::int64_t epochs) const;

 private:
  RunDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  static RunDirectory lock(const std::string& path);
  void remove_old_run() const;

  std::string path_;
  int lock_ = -1;
};

/// What env.json says beside version, compiler, processor and threads.
struct Surroundings {
  std::string command_line = {};
  std::string base_directory = {};  ///< where relative data paths were looked for, second to the working directory
  std::int64_t seed = 0;
  std::vector<std::pair<std::string, std::string>> fingerprints = {};  ///< of the data files: "train", "<size>-<crc>"
};
std::string env_json(const Surroundings& surroundings);

}  // namespace taper::train
