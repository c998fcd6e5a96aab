#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "../../src/rewrite/matrix.hpp"

namespace normscope::test {

/// Room at the end of `bytes`.
inline rewrite::Sink appended_to(std::vector<std::byte>& bytes) {
  return [&bytes](std::size_t size) {
    bytes.resize(bytes.size() + size);
    return std::span(bytes).last(size);
  };
}

}  // namespace normscope::test
