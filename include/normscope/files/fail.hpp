#pragma once

#include <string>
#include <string_view>

#include <normscope/core/error.hpp>

namespace normscope::files {

/// Throws the error "<where>: <what>".
[[noreturn]] inline void fail(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, where + ": " + what);
}

/// A name from a file, in quotes and safe for one line of a message: control characters as \xNN, cut after
/// 100 bytes.
[[nodiscard]] std::string quote(std::string_view name);

}  // namespace normscope::files
