#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace normscope::rewrite {

/// A hash that detects accidental changes but not forgery: each of eight lanes multiplies the words it takes.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const;

 private:
  static constexpr std::size_t lanes = 8;
  using Words = std::array<std::uint64_t, lanes>;

  std::uint64_t size_ = 0;
  Words mixed_ = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::byte, sizeof(Words)> rest_{};  ///< of `size_` modulo its length
};

/// The fingerprint of a whole file.
///
/// Errors    Io
[[nodiscard]] std::uint64_t fingerprint_of(const std::filesystem::path& path);

}  // namespace normscope::rewrite
