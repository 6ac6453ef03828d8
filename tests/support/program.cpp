#ifdef TAPER_PROGRAM

#include "support/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "support/temp_folder.hpp"

namespace {

std::string fresh_name() {
  static int counter = 0;
  return (std::filesystem::temp_directory_path() /
          ("taper-said-" + std::to_string(::getpid()) + "-" + std::to_string(counter++)))
      .string();
}

}  // namespace

Program::Program(const std::string& folder, const std::vector<std::string>& arguments, const std::string& out)
    : err_path_(fresh_name()) {
  if (out.empty()) out_path_ = fresh_name();
  std::vector<std::string> words{TAPER_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const std::string out_path = out.empty() ? out_path_ : out;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, err_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const int error = ::posix_spawn(&id_, TAPER_PROGRAM, &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " TAPER_PROGRAM);
}

Program::~Program() {
  if (id_ > 0) {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  for (const std::string& path : {out_path_, err_path_})
    if (!path.empty()) ::unlink(path.c_str());
}

std::string Program::err() const { return slurp(err_path_); }

Outcome Program::wait() {
  int status = 0;
  ::waitpid(id_, &status, 0);
  id_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out_path_.empty() ? "" : slurp(out_path_),
          slurp(err_path_)};
}

Outcome run_taper(const std::string& folder, const std::vector<std::string>& arguments, const std::string& out) {
  return Program(folder, arguments, out).wait();
}

#endif
