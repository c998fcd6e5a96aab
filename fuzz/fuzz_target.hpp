#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

/// The functions that a fuzz target defines: the entry that libFuzzer calls, and a few valid inputs to start
/// from.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
std::vector<std::string> fuzz_seeds();

/// Aborts unless the condition holds.
inline void fuzz_require(bool holds) {
  if (!holds) std::abort();
}
