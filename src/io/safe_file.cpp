#include "io/safe_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "base/fail.hpp"

namespace taper::io {

FileCalls file_calls = {
    [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
    ::flock,
    ::posix_fallocate,
    ::write,
    ::fsync,
    ::close,
    ::rename,
    ::unlink,
};

namespace {

constexpr std::string_view kTempPrefix = ".taper-";
constexpr std::string_view kTempSuffix = ".tmp";

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

const char* advice_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free space and resume";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a folder that can be written";
    case ENOENT:
      return "; create its folder first";
    case EISDIR:
      return "; give the name of a file";
    default:
      return "";
  }
}

[[noreturn]] void fail_write(const std::string& path, int error) {
  fail(ErrorKind::io, path, ": cannot write: ", std::generic_category().message(error), advice_for(error));
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

void write_all(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t ask = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
    const ssize_t written = retry([&] { return file_calls.write(fd, bytes.data(), ask); });
    if (written < 0) fail_write(path, errno);
    if (written == 0) fail_write(path, EIO);
    bytes.remove_prefix(std::size_t(written));
  }
}

/// Whether `path` is a device, a pipe or the like, which takes bytes but must not be replaced.
bool is_special(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

void write_special(const std::string& path, std::span<const std::string_view> pieces) {
  struct Descriptor {
    int fd;
    ~Descriptor() { file_calls.close(fd); }
  };
  const Descriptor out{retry([&] { return file_calls.open(path.c_str(), O_WRONLY | O_CLOEXEC, 0); })};
  if (out.fd < 0) fail_write(path, errno);
  for (const auto& piece : pieces) write_all(out.fd, path, piece);
}

/// The new content of `path` under a name of its own in the same folder, until `commit`.
class TempFile {
 public:
  explicit TempFile(const std::string& path) : path_(path), folder_(folder_of(path)) {
    struct stat status;
    if (::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) fail_write(path, EISDIR);
    create();
  }
  ~TempFile() {
    if (fd_ >= 0) file_calls.close(fd_);
    if (!name_.empty()) file_calls.unlink(name_.c_str());
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  /// Takes the space on the disk, so that a full one is found before anything is written.
  void reserve(std::size_t size) {
    if (size == 0) return;
    if (size > std::size_t(LLONG_MAX)) fail_write(path_, EFBIG);
    int error;
    do error = file_calls.allocate(fd_, 0, off_t(size));
    while (error == EINTR);
    const bool unsupported = error == EOPNOTSUPP || error == EINVAL || error == ENOSYS;
    if (error != 0 && !unsupported) fail_write(path_, error);
  }

  void write(std::string_view bytes) { write_all(fd_, path_, bytes); }

  void commit() {
    if (retry([&] { return file_calls.sync(fd_); }) != 0) fail_write(path_, errno);
    // The descriptor is gone after close, whatever it returns; an interrupted one lost nothing that was synced.
    if (file_calls.close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail_write(path_, errno);
    if (retry([&] { return file_calls.rename(name_.c_str(), path_.c_str()); }) != 0) fail_write(path_, errno);
    name_.clear();
    sync_folder();
  }

 private:
  void create() {
    static std::atomic<unsigned> counter{0};
    for (int attempt = 0; attempt < 1000; ++attempt) {
      std::string name = cat(folder_, '/', kTempPrefix, ::getpid(), '-', counter++, kTempSuffix);
      fd_ = retry(
          [&] { return file_calls.open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666); });
      if (fd_ < 0 && errno == EEXIST) continue;
      if (fd_ < 0) fail_write(path_, errno);
      name_ = std::move(name);
      // The lock tells `remove_stale_temps` that somebody is alive; a file system without locks loses only that.
      file_calls.lock(fd_, LOCK_EX | LOCK_NB);
      return;
    }
    fail_write(path_, EEXIST);
  }

  void sync_folder() {
    const int fd = retry([&] { return file_calls.open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
    if (fd < 0) fail_write(path_, errno);
    const int failed = retry([&] { return file_calls.sync(fd); }) != 0 ? errno : 0;
    file_calls.close(fd);
    // Some file systems cannot sync a folder and say EINVAL.
    if (failed != 0 && failed != EINVAL) fail_write(path_, failed);
  }

  std::string path_, folder_, name_;
  int fd_ = -1;
};

bool is_temp_name(std::string_view name) { return name.starts_with(kTempPrefix) && name.ends_with(kTempSuffix); }

/// A temporary file nobody holds the lock of belongs to a process that died.
bool is_stale(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat status;
  const bool stale = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return stale;
}

}  // namespace

void write_file(const std::string& path, std::span<const std::string_view> pieces) {
  if (is_special(path)) return write_special(path, pieces);
  std::size_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
  TempFile temp(path);
  temp.reserve(size);
  for (const auto& piece : pieces) temp.write(piece);
  temp.commit();
}

void write_file(const std::string& path, std::string_view bytes) { write_file(path, std::span(&bytes, 1)); }

std::vector<std::string> remove_stale_temps(const std::string& folder) {
  std::vector<std::string> removed;
  DIR* listing = ::opendir(folder.c_str());
  if (!listing) return removed;
  while (const dirent* entry = ::readdir(listing))
    if (is_temp_name(entry->d_name)) removed.emplace_back(entry->d_name);
  ::closedir(listing);
  std::erase_if(removed, [&](const std::string& name) {
    const std::string path = cat(folder, '/', name);
    return !is_stale(path) || ::unlink(path.c_str()) != 0;
  });
  std::sort(removed.begin(), removed.end());
  return removed;
}

}  // namespace taper::io
