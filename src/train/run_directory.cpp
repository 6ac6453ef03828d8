#include "train/run_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/cpu_features.hpp"
#include "base/fail.hpp"
#include "config/json_text.hpp"
#include "io/byte_source.hpp"
#include "io/safe_file.hpp"
#include "taper/creation.hpp"

namespace taper::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLock = ".lock";
constexpr const char* kMetricsFile = "metrics.csv";

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_system(const std::string& path, const char* what, int error) {
  fail(ErrorKind::io, path, ": ", what, ": ", reason(error));
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_system(path, "cannot create the folder", error.value());
}

/// Whether the folder was made now; false when it was there.
bool make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  if (errno == EEXIST) return false;
  fail_system(path, "cannot create the folder", errno);
}

bool is_empty_but_lock(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename() != kLock) return false;
  if (error) fail_system(path, "cannot read the folder", error.value());
  return true;
}

std::string numbered(std::int64_t n) {
  char name[24];
  std::snprintf(name, sizeof name, "%04lld", static_cast<long long>(n));
  return name;
}

std::int64_t largest_number(const std::string& folder) {
  std::int64_t largest = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos)
      largest = std::max<std::int64_t>(largest, std::stoll(name));
  }
  return largest;
}

/// Makes `folder/latest` point to `name`. A link is a convenience: a file system without links does not end a run.
void point_latest_to(const std::string& folder, const std::string& name) {
  const std::string link = folder + "/latest", fresh = cat(folder, "/.latest-", ::getpid());
  ::unlink(fresh.c_str());
  if (::symlink(name.c_str(), fresh.c_str()) != 0) return;
  if (::rename(fresh.c_str(), link.c_str()) != 0) ::unlink(fresh.c_str());
}

const char* processor() {
#if defined(__x86_64__)
  if (TAPER_CPU_SUPPORTS("avx512f", AVX512F)) return "x86-64 avx512f";
  if (TAPER_CPU_SUPPORTS("avx2", AVX2)) return TAPER_CPU_SUPPORTS("fma", FMA) ? "x86-64 avx2 fma" : "x86-64 avx2";
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "other";
#endif
}

}  // namespace

RunDirectory RunDirectory::create(const std::string& name, const std::string& root) {
  const std::string folder = root + "/" + name;
  make_folders(folder);
  std::int64_t number = largest_number(folder) + 1;
  // Somebody else may take the same number: who makes the folder has it.
  while (!make_folder(folder + "/" + numbered(number))) ++number;
  RunDirectory run = lock(folder + "/" + numbered(number));
  make_folders(run.file("checkpoints"));
  point_latest_to(folder, numbered(number));
  return run;
}

RunDirectory RunDirectory::create_at(const std::string& path, bool force) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored))
    fail(ErrorKind::io, path, ": cannot hold a run: expected a folder, got a file");
  make_folders(path);
  RunDirectory run = lock(path);
  if (!is_empty_but_lock(path)) {
    if (!force)
      fail(ErrorKind::io, path,
           ": the folder is not empty: expected a new or an empty one; use --force to replace the run");
    run.remove_old_run();
  }
  make_folders(run.file("checkpoints"));
  return run;
}

RunDirectory RunDirectory::open(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path + "/checkpoints", ignored))
    fail(ErrorKind::io, path, ": not a run: expected a folder with checkpoints/last.safetensors");
  RunDirectory run = lock(path);
  io::remove_stale_temps(run.path_);
  io::remove_stale_temps(run.file("checkpoints"));
  return run;
}

RunDirectory RunDirectory::lock(const std::string& path) {
  const std::string file = path + "/" + kLock;
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) fail_system(file, "cannot create the file", errno);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd);
    if (error == EWOULDBLOCK)
      fail(ErrorKind::io, path, ": another run is writing here; wait for its end or choose another folder");
    fail_system(file, "cannot lock the file", error);
  }
  return RunDirectory(path, fd);
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void RunDirectory::remove_old_run() const {
  std::error_code error;
  for (const char* name : {"config.json", "env.json", kMetricsFile, "events.jsonl", "report.html",
                           "checkpoints/last.safetensors", "checkpoints/best.safetensors"}) {
    fs::remove(file(name), error);
    if (error) fail_system(file(name), "cannot remove the file", error.value());
  }
  for (const char* name : {"eval", "tb"}) {
    fs::remove_all(file(name), error);
    if (error) fail_system(file(name), "cannot remove the folder", error.value());
  }
}

void RunDirectory::write(std::string_view name, std::string_view text) const { io::write_file(file(name), text); }

void RunDirectory::append(std::string_view name, std::string_view line) const {
  const std::string target = file(name);
  const int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) fail_system(target, "cannot write", errno);
  std::string bytes(line);
  bytes += '\n';
  std::size_t done = 0;
  int error = 0;
  while (done < bytes.size() && error == 0) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n >= 0)
      done += std::size_t(n);
    else if (errno != EINTR)
      error = errno;
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) fail_system(target, "cannot write", error);
}

void RunDirectory::start_metrics(const std::vector<std::string>& columns, std::int64_t epochs) const {
  std::string header;
  for (const auto& column : columns) header += (header.empty() ? "" : ",") + column;
  std::error_code ignored;
  std::string kept = header + "\n";
  if (epochs > 0 && fs::exists(file(kMetricsFile), ignored)) {
    std::istringstream lines(io::read_file(file(kMetricsFile), std::int64_t{1} << 30));
    std::string line;
    std::getline(lines, line);
    if (line != header)
      fail(ErrorKind::config, file(kMetricsFile), ": the run has other columns: expected ", header, ", got ", line);
    for (std::int64_t row = 0; row < epochs && std::getline(lines, line) && !lines.eof(); ++row) kept += line + "\n";
  }
  write(kMetricsFile, kept);
}

std::string env_json(const Surroundings& surroundings) {
  config::Json env;
  env["version"] = TAPER_VERSION;
  env["compiler"] = __VERSION__;
  env["processor"] = processor();
  env["cpu_capability"] = get_cpu_capability();
  env["threads"] = get_num_threads();
  env["seed"] = surroundings.seed;
  env["command_line"] = surroundings.command_line;
  env["base_directory"] = surroundings.base_directory;
  env["data"] = config::Json::object();
  for (const auto& [name, fingerprint] : surroundings.fingerprints) env["data"][name] = fingerprint;
  return env.dump(2, ' ', false, config::Json::error_handler_t::replace) + "\n";
}

}  // namespace taper::train
