#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <normscope/core/error.hpp>

/// Serializes plain values as their bytes in memory, for reading by the same program on the same kind of
/// machine.
namespace normscope {

class Packer {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  /// Its length, then its values.
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(values.size());
    append(values.data(), values.size() * sizeof(T));
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + size);
    if (size > 0) std::memcpy(bytes_.data() + before, data, size);
  }

  std::vector<std::byte> bytes_{};
};

/// Reads values in the order in which they were written; errors have the message `misfit`.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes,
                    std::string misfit = "packed values: fewer or more bytes than were put")
      : rest_(bytes), misfit_(std::move(misfit)) {}

  /// Errors    Format if there are too few bytes
  template <typename T>
  void get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    take(&value, 1, sizeof value);
  }
  /// Errors    Format if there are too few bytes, or the length is invalid
  template <typename T>
  void get(std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::size_t size = 0;
    get(size);
    expect(size <= rest_.size() / sizeof(T));
    values.resize(size);
    take(values.data(), size, sizeof(T));
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  /// Errors    Format if bytes remain
  void finish() const { expect(at_end()); }

 private:
  void expect(bool holds) const {
    if (!holds) throw Error(ErrorCode::Format, misfit_);
  }
  void take(void* data, std::size_t count, std::size_t size) {
    expect(count <= rest_.size() / size);
    if (count > 0) std::memcpy(data, rest_.data(), count * size);
    rest_ = rest_.subspan(count * size);
  }

  std::span<const std::byte> rest_;
  std::string misfit_;
};

}  // namespace normscope
