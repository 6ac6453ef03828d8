#pragma once

#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)

namespace taper {

/// What an error is about; a caller decides by it what to do next.
enum class ErrorKind {
  shape,   ///< extents that do not fit an operation or each other
  type,    ///< an element type an operation does not take
  tape,    ///< a wrong use of recording or of `backward`
  config,  ///< an option, key or argument outside its rule
  format,  ///< a file whose bytes are not what its format promises
  io,      ///< the operating system refused to read or write
};

/// Every failure of Taper. `what()` is one sentence of the grammar
/// `where: what is wrong: expected E, got G; hint`, for example
/// `avg_pool2d: padding must be at most half the kernel size: expected <= 1, got 2`.
/// It is thrown before anything is allocated or changed.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}

  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace taper

#pragma GCC visibility pop
