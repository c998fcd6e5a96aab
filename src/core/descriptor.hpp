#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope {

/// Throws an Error that names the file.
[[noreturn]] inline void fail(const std::filesystem::path& file, std::string_view what) {
  throw Error(ErrorCode::Io, fmt::format("file: {}: {}", file.string(), what));
}

/// Throws an Error that names the file and the system's reason.
[[noreturn]] inline void fail_errno(const std::filesystem::path& file, std::string_view what) {
  fail(file, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// A descriptor that is closed in the end.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int value() const { return value_; }
  [[nodiscard]] int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

}  // namespace normscope
