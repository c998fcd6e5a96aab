#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace normscope::test {

/// The folder of real checkpoints and data sets: $NORMSCOPE_DATA, else the one CMake was given.
inline std::filesystem::path data_folder() {
  const char* folder = std::getenv("NORMSCOPE_DATA");
  return folder != nullptr ? folder : NORMSCOPE_DATA;
}

}  // namespace normscope::test

/// Declares `name` as the path of a real data file, or skips the test saying that it is absent.
// NOLINTNEXTLINE(bugprone-macro-parentheses): `name` is declared
#define NORMSCOPE_NEED_DATA(name, relative)                                         \
  const std::filesystem::path name = ::normscope::test::data_folder() / (relative); \
  if (!std::filesystem::exists(name)) GTEST_SKIP() << "real data absent: " << name.string()
