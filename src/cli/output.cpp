#include "cli/output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/fail.hpp"

namespace taper::cli {

namespace {

/// Writes everything; the error number if that fails, else 0.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(std::size_t(n));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

bool reader_left = false;

}  // namespace

void prepare_streams() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file beyond the user's limit: an answer of `write`, too
  // Open for the wrong direction: using it fails, as it does with a closed stream.
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

void print(std::string_view text) {
  if (reader_left) return;
  const int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE)
    reader_left = true;
  else if (error != 0)
    fail(ErrorKind::io, "standard output: cannot write: ", std::generic_category().message(error));
}

void say(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

}  // namespace taper::cli
