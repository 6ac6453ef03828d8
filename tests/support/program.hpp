#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

/// The built program `taper`, driven from outside.
struct Outcome {
  int exit = -1;  ///< 128 plus the signal that ended it
  std::string out, err;
};

class Program {
 public:
  /// Starts it in `folder`. Standard output goes to `out` if that is given, and is empty in the outcome then.
  Program(const std::string& folder, const std::vector<std::string>& arguments, const std::string& out = "");
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t id() const { return id_; }
  /// What it has said so far.
  std::string err() const;
  Outcome wait();

 private:
  std::string out_path_, err_path_;
  pid_t id_ = -1;
};

/// Runs it to its end in `folder`.
Outcome run_taper(const std::string& folder, const std::vector<std::string>& arguments, const std::string& out = "");
