#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taper::io {

/// The system calls `write_file` makes, each as in the manual. Tests put failing ones in their place.
struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  int (*lock)(int fd, int operation);
  int (*allocate)(int fd, off_t offset, off_t length);  ///< returns the error number, as posix_fallocate does
  ssize_t (*write)(int fd, const void* data, std::size_t size);
  int (*sync)(int fd);
  int (*close)(int fd);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
};
extern FileCalls file_calls;

/// Writes the pieces one after another as the file `path`, all or nothing: at every moment, also after a crash
/// or a loss of power, `path` is the old file or the whole new one.
///
/// A temporary file in the same folder takes the bytes, with the space reserved first; it is synced, renamed
/// over `path`, and the folder is synced. A failure removes it. A device or a pipe is written to as it is.
/// Errors: `ErrorKind::io`, `path: cannot write: <the system's reason>; <what to do>`.
void write_file(const std::string& path, std::span<const std::string_view> pieces);
void write_file(const std::string& path, std::string_view bytes);

/// Removes the temporary files that killed processes left in `folder`, and returns their names. Files that a
/// running process still writes are kept. A folder that cannot be read has none.
std::vector<std::string> remove_stale_temps(const std::string& folder);

}  // namespace taper::io
