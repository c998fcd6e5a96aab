#pragma once

#include <string>

#include <normscope/core/error.hpp>

namespace normscope::files {

/// Throws the error "<where>: <what>".
[[noreturn]] inline void fail(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, where + ": " + what);
}

}  // namespace normscope::files
