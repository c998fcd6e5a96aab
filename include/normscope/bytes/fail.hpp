#pragma once

#include <string>

#include <normscope/core/error.hpp>

namespace normscope::bytes {

/// Throws the error "<where>: <what>".
[[noreturn]] inline void fail(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, where + ": " + what);
}

}  // namespace normscope::bytes
