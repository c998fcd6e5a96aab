#pragma once

#include <stdexcept>
#include <string>

namespace normscope {

/// What kind of bad input an `Error` reports.
enum class ErrorCode {
  Io,           ///< a file that cannot be opened, read or written
  Format,       ///< bytes that break the rules of their file format
  Shape,        ///< sizes that do not fit together
  Argument,     ///< a value outside its domain
  Unsupported,  ///< well formed, but not something this library handles
  Cancelled,    ///< the caller's `Progress` asked to stop
};

/// Bad input. The message is one line: the input, what it contains, and what was expected. Mathematical
/// outcomes (not selectable, not converged) are values, never an `Error`.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace normscope

/// Checks a documented precondition in builds with `NORMSCOPE_ASSERTIONS`; free in the others.
#ifdef NORMSCOPE_ASSERTIONS
#include <cstdio>
#include <cstdlib>
#define NORMSCOPE_ASSERT(condition) \
  ((condition)                      \
       ? void()                     \
       : (std::fprintf(stderr, "%s:%d: precondition %s\n", __FILE__, __LINE__, #condition), std::abort()))
#else
#define NORMSCOPE_ASSERT(condition) static_cast<void>(0)
#endif
