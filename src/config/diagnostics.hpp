#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/source.hpp"
#include "taper/error.hpp"

namespace taper::config {

/// One thing that is wrong in a config.
struct Diagnostic {
  std::string pointer;            ///< JSON pointer of the value or key; empty for the document
  std::string message;            ///< "expected an integer, got 2.9"
  std::string layer = {};         ///< name of the layer it is about, if any
  std::optional<Span> span = {};  ///< what to underline, if it stands in the text
  std::string origin = {};        ///< where a value that stands in no file came from: "--set train.epochs"
};

/// Collects everything that is wrong with one text, and shows it in the order of the text.
class Diagnostics {
 public:
  /// More than this many are counted only: nobody reads them, and a hostile text can cause millions.
  static constexpr std::size_t kMost = 100;

  /// For values that stand in no text: nothing has a position.
  Diagnostics();
  explicit Diagnostics(Source source);

  void add(Diagnostic diagnostic);

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  /// Whether a further finding is counted only, so that locating it is wasted work.
  bool is_full() const { return count_ >= kMost; }
  const std::shared_ptr<const Source>& source() const { return source_; }

  /// All of them by position (those without one last), each as a compiler shows it:
  /// `forum.json:14:9: error: /model/layers/2/kernal_size: unknown key; did you mean kernel_size?`, the line, a caret.
  std::string render() const;

  /// All of them by position, a sentence and a line each:
  /// `/model/layers/2/kernal_size (line 14): unknown key; did you mean kernel_size?`
  std::string sentences() const;

  /// "2 errors in forum.json".
  std::string summary() const;

  /// Throws a `ConfigError` if there is anything to say.
  void throw_if_any() const;

 private:
  using Form = std::string (Diagnostics::*)(const Diagnostic&) const;
  std::string listing(Form form) const;
  std::string as_compiler(const Diagnostic& diagnostic) const;
  std::string as_sentence(const Diagnostic& diagnostic) const;

  std::shared_ptr<const Source> source_;
  std::vector<Diagnostic> kept_;
  std::size_t count_ = 0;
};

/// A config that was refused. `what()` has a sentence for each thing wrong; `rendered()` the same with lines, carets
/// and the summary.
class ConfigError : public Error {
 public:
  explicit ConfigError(const Diagnostics& diagnostics);

  const std::string& rendered() const noexcept { return *rendered_; }

 private:
  std::shared_ptr<const std::string> rendered_;  // copying an exception must not throw
};

}  // namespace taper::config
