#pragma once

#include <string>
#include <string_view>
#include <vector>

/// A folder of its own for one test, removed with all that is in it.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  /// Creates the file with plain stream output, and returns its path.
  std::string write(std::string_view name, std::string_view bytes) const;
  /// Names in the folder, sorted.
  std::vector<std::string> list() const;

 private:
  std::string path_;
};

/// The bytes of a file, read with a plain stream.
std::string slurp(const std::string& path);
