#include "io/safe_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/temp_folder.hpp"
#include "taper/error.hpp"

using namespace taper;
using io::file_calls;
using io::write_file;

namespace {

/// Counts the calls of one write, and makes call number `fail_at` fail with `error`, or do what `act` says.
struct Faults {
  enum Act { fail, interrupt_once, short_write, kill };
  static inline int calls = 0, fail_at = -1, error = 0;
  static inline Act act = fail;
  static inline std::string last_call, sequence;
  static inline io::FileCalls real = file_calls;

  static bool hit(const char* name) {
    sequence += std::string(name) + ' ';
    if (calls++ != fail_at) return false;
    last_call = name;
    if (act == kill) ::raise(SIGKILL);
    errno = act == interrupt_once ? EINTR : error;
    return act != short_write;
  }

  Faults(int at, Act what, int number = 0) {
    calls = 0, fail_at = at, error = number, act = what;
    last_call.clear();
    sequence.clear();
    file_calls.open = [](const char* p, int f, mode_t m) { return hit("open") ? -1 : real.open(p, f, m); };
    file_calls.allocate = [](int fd, off_t o, off_t n) { return hit("allocate") ? errno : real.allocate(fd, o, n); };
    file_calls.write = [](int fd, const void* p, std::size_t n) -> ssize_t {
      const bool here = calls == fail_at;
      if (hit("write")) return -1;
      return real.write(fd, p, here && act == short_write ? 1 : n);
    };
    file_calls.sync = [](int fd) { return hit("sync") ? -1 : real.sync(fd); };
    file_calls.close = [](int fd) {
      const bool failed = hit("close");
      const int kept = errno, result = real.close(fd);
      errno = kept;
      return failed ? -1 : result;
    };
    file_calls.rename = [](const char* a, const char* b) { return hit("rename") ? -1 : real.rename(a, b); };
  }
  ~Faults() { file_calls = real; }
};

const std::vector<std::string_view> kFileParts = {"new ", "content ", "", "of the file"};
const std::string kNew = "new content of the file", kOld = "old content";

int calls_of_one_write() {
  const TempFolder folder;
  Faults count(-1, Faults::fail);
  write_file(folder / "a", kFileParts);
  return Faults::calls;
}

}  // namespace

TEST_CASE("a written file holds the pieces in order, and nothing else is left in the folder") {
  const TempFolder folder;
  write_file(folder / "a", kFileParts);
  CHECK(slurp(folder / "a") == kNew);
  write_file(folder / "a", "");
  CHECK(slurp(folder / "a").empty());
  CHECK(folder.list() == std::vector<std::string>{"a"});
  struct stat status;
  REQUIRE(::stat((folder / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0600) == 0600);
}

TEST_CASE("the content is on the disk before the name changes, and the name before a save returns") {
  const TempFolder folder;
  const Faults record(-1, Faults::fail);
  write_file(folder / "a", kNew);
  CHECK(Faults::sequence == "open allocate write sync close rename open sync close ");
}

TEST_CASE("any call of a save may fail: the old file stays whole and no temporary file is left") {
  const int calls = calls_of_one_write();
  // open, allocate, write (3), sync, close, rename; open, sync and close of the folder, where the last cannot matter.
  REQUIRE(calls == 11);
  const auto number = GENERATE(ENOSPC, EIO, EDQUOT, EROFS, EACCES);
  for (int at = 0; at < calls - 1; ++at) {
    const TempFolder folder;
    folder.write("a", kOld);
    std::string message;
    {
      Faults faults(at, Faults::fail, number);
      message = test::message_of([&] { write_file(folder / "a", kFileParts); });
    }
    CAPTURE(at, number, Faults::last_call, message);
    CHECK(message.starts_with(folder / "a: cannot write: "));
    CHECK(folder.list() == std::vector<std::string>{"a"});
    // Only the folder is synced after the rename: then the new file is there, whole.
    CHECK(slurp(folder / "a") == (at < 8 ? kOld : kNew));
  }
}

TEST_CASE("interrupted calls are repeated and short writes continued") {
  const int calls = calls_of_one_write();
  for (const auto act : {Faults::interrupt_once, Faults::short_write}) {
    for (int at = 0; at < calls; ++at) {
      const TempFolder folder;
      folder.write("a", kOld);
      const Faults faults(at, act);
      CAPTURE(at, int(act));
      CHECK_NOTHROW(write_file(folder / "a", kFileParts));
      CHECK(slurp(folder / "a") == kNew);
      CHECK(folder.list() == std::vector<std::string>{"a"});
    }
  }
}

TEST_CASE("a file system that cannot reserve space or sync a folder is written to all the same") {
  const TempFolder folder;
  {
    const Faults faults(1, Faults::fail, EOPNOTSUPP);
    write_file(folder / "a", kFileParts);
    CHECK(Faults::last_call == "allocate");
  }
  {
    const Faults faults(9, Faults::fail, EINVAL);
    write_file(folder / "a", kFileParts);
    CHECK(Faults::last_call == "sync");
  }
  CHECK(slurp(folder / "a") == kNew);
}

TEST_CASE("a process killed at any call leaves the old file or the new one, and a temporary file that can be removed") {
  const int calls = calls_of_one_write();
  for (int at = 0; at < calls; ++at) {
    const TempFolder folder;
    folder.write("a", kOld);
    const pid_t child = ::fork();
    if (child == 0) {
      const Faults faults(at, Faults::kill);
      write_file(folder / "a", kFileParts);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CAPTURE(at);
    CHECK(WIFSIGNALED(status));
    CHECK(slurp(folder / "a") == (at < 8 ? kOld : kNew));
    CHECK(io::remove_stale_temps(folder.path()).size() == (at > 0 && at < 8 ? 1 : 0));
    CHECK(folder.list() == std::vector<std::string>{"a"});
  }
}

TEST_CASE("temporary files of running processes, and other files, are not removed") {
  const TempFolder folder;
  folder.write(".taper-1-1.tmp", "stale");
  folder.write(".taper-notes", "mine");
  folder.write("x.tmp", "mine");
  const std::string held = folder.write(".taper-2-7.tmp", "being written");
  const int fd = ::open(held.c_str(), O_RDONLY);
  REQUIRE(::flock(fd, LOCK_EX) == 0);
  CHECK(io::remove_stale_temps(folder.path()) == std::vector<std::string>{".taper-1-1.tmp"});
  CHECK(folder.list() == std::vector<std::string>{".taper-2-7.tmp", ".taper-notes", "x.tmp"});
  ::close(fd);
  CHECK(io::remove_stale_temps(folder / "none").empty());
}

TEST_CASE("a path that cannot be written is refused with the system's reason") {
  const TempFolder folder;
  folder.write("file", "x");
  const auto message = [&](const std::string& path) { return test::message_of([&] { write_file(path, "x"); }); };
  CHECK(message(folder / "none/a") ==
        folder / "none/a: cannot write: No such file or directory; create its folder first");
  CHECK(message(folder / "file/a") == folder / "file/a: cannot write: Not a directory");
  CHECK(message(folder.path()) == folder.path() + ": cannot write: Is a directory; give the name of a file");
  const std::string long_name(300, 'n');
  CHECK(message(folder / long_name) == folder / (long_name + ": cannot write: File name too long"));
  CHECK(folder.list() == std::vector<std::string>{"file"});
  {
    const Faults faults(2, Faults::fail, ENOSPC);
    CHECK(message(folder / "a") == folder / "a: cannot write: No space left on device; free space and resume");
  }
  {
    const Faults faults(0, Faults::fail, EACCES);
    CHECK(message(folder / "a") == folder / "a: cannot write: Permission denied; choose a folder that can be written");
  }
}

TEST_CASE("saving over a symbolic link replaces the link and not the file it points to") {
  const TempFolder folder;
  folder.write("target", kOld);
  REQUIRE(::symlink("target", (folder / "a").c_str()) == 0);
  write_file(folder / "a", kNew);
  CHECK(slurp(folder / "target") == kOld);
  CHECK(slurp(folder / "a") == kNew);
}

TEST_CASE("a pipe is written to, not replaced by a file") {
  const TempFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_NONBLOCK);  // with both ends here, nobody waits
  REQUIRE(reader >= 0);
  io::write_file(path, "abcde");
  char bytes[7] = {};
  CHECK(::read(reader, bytes, 6) == 5);
  CHECK(std::string(bytes) == "abcde");
  ::close(reader);
  struct stat status;
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  CHECK(S_ISFIFO(status.st_mode));
  CHECK(folder.list() == std::vector<std::string>{"pipe"});
}

TEST_CASE("a device that takes no more says so in the system's words") {
  const TempFolder folder;
  const std::string path = folder / "full";
  REQUIRE(::symlink("/dev/full", path.c_str()) == 0);
  CHECK(test::message_of([&] { io::write_file(path, "abcde"); }) ==
        path + ": cannot write: No space left on device; free space and resume");
}
