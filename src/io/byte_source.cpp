#include "io/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/fail.hpp"

namespace taper::io {

namespace {

[[noreturn]] void fail_read(const std::string& path, int error) {
  const char* advice = error == EISDIR ? "; give the name of a file" : "";
  fail(ErrorKind::io, path, ": cannot read: ", std::generic_category().message(error), advice);
}

/// Opens without waiting for the other end of a pipe, and without becoming the owner of a terminal.
int open_regular(const std::string& path, std::int64_t& size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) fail_read(path, errno);
  struct stat status;
  const int error = ::fstat(fd, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size = status.st_size;
    return fd;
  }
  ::close(fd);
  if (error != 0) fail_read(path, error);
  fail(ErrorKind::io, path, ": cannot read: not a regular file");
}

}  // namespace

ByteSource::ByteSource(const std::string& path) : name_(path) { fd_ = open_regular(path, size_); }

ByteSource::ByteSource(std::string name, std::string_view bytes)
    : name_(std::move(name)), memory_(bytes.data()), size_(std::int64_t(bytes.size())) {}

ByteSource::~ByteSource() {
  if (fd_ >= 0) ::close(fd_);
}

void ByteSource::read(std::int64_t offset, void* out, std::size_t n) const {
  if (fd_ < 0) {
    if (n != 0) std::memcpy(out, memory_ + offset, n);
    return;
  }
  auto* to = static_cast<char*>(out);
  while (n > 0) {
    const ssize_t got = ::pread(fd_, to, std::min<std::size_t>(n, std::size_t{1} << 30), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(name_, errno);
    if (got == 0) fail(ErrorKind::io, name_, ": cannot read: the file became shorter while it was read");
    to += got;
    offset += got;
    n -= std::size_t(got);
  }
}

std::string ByteSource::read(std::int64_t offset, std::size_t n) const {
  std::string bytes(n, '\0');
  read(offset, bytes.data(), n);
  return bytes;
}

std::string read_file(const std::string& path, std::int64_t limit) {
  const ByteSource source(path);
  if (source.size() > limit)
    fail(ErrorKind::format, path, ": file is too large: expected at most ", limit, " bytes, got ", source.size());
  return source.read(0, std::size_t(source.size()));
}

}  // namespace taper::io
