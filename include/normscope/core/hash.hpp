#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace normscope {

/// FNV-1a of bytes or words: tells contents apart that nobody chose so that they collide.
class Fnv {
 public:
  explicit Fnv(std::uint64_t seed = 0) : value_(0xcbf29ce484222325U ^ seed) {}

  void add(std::uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3U; }
  /// The bits of numbers.
  void add(std::span<const double> numbers) {
    for (const double number : numbers) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      add(bits);
    }
  }
  /// The characters, byte by byte.
  void add(std::string_view text) {
    for (const char character : text) add(std::uint64_t{static_cast<unsigned char>(character)});
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace normscope
