#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/little_endian.hpp>
#include <normscope/core/error.hpp>

/// FlatBuffers: tables whose fields are found through a list of offsets, and vectors. Every offset is checked
/// where it is followed; nothing here recurses.
namespace normscope::checkpoint {

/// The bytes of a file of FlatBuffers.
///
/// Errors    Format: messages begin with `where`
class FlatFile {
 public:
  FlatFile(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  [[nodiscard]] std::span<const std::byte> part(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) {
      fail(ErrorCode::Format, fmt::format("has {} bytes, expected {} at byte {}", bytes_.size(), size, at));
    }
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }
  template <typename Number>
  [[nodiscard]] Number number(std::uint64_t at) const {
    return bytes::load<Number>(part(at, sizeof(Number)));
  }
  /// The position to which the offset stored at a position points.
  [[nodiscard]] std::uint64_t follow(std::uint64_t at) const { return at + number<std::uint32_t>(at); }

  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { bytes::fail(code, where_, what); }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  std::span<const std::byte> bytes_;
  const std::string& where_;
};

/// A vector: its elements follow its length.
struct FlatVector {
  std::uint64_t begin = 0;
  std::uint32_t size = 0;
};

class FlatTable {
 public:
  FlatTable(const FlatFile& file, std::uint64_t at) : file_(&file), at_(at) {
    const std::int64_t fields = static_cast<std::int64_t>(at) - file.number<std::int32_t>(at);
    if (fields < 0) file.fail(ErrorCode::Format, fmt::format("table at byte {} has no list of fields", at));
    fields_ = static_cast<std::uint64_t>(fields);
    size_ = file.number<std::uint16_t>(fields_);
    (void)file.part(fields_, size_);
  }

  /// The position of a field; empty if the table does not have it.
  [[nodiscard]] std::optional<std::uint64_t> field(unsigned number) const {
    const std::uint64_t entry = 4 + 2 * std::uint64_t{number};
    if (entry + 2 > size_) return std::nullopt;
    const auto offset = file_->number<std::uint16_t>(fields_ + entry);
    return offset == 0 ? std::nullopt : std::optional(at_ + offset);
  }
  template <typename Number>
  [[nodiscard]] Number number(unsigned field_number, Number otherwise = {}) const {
    const std::optional<std::uint64_t> at = field(field_number);
    return at ? file_->number<Number>(*at) : otherwise;
  }
  [[nodiscard]] std::optional<FlatTable> table(unsigned field_number) const {
    const std::optional<std::uint64_t> at = field(field_number);
    return at ? std::optional(FlatTable(*file_, file_->follow(*at))) : std::nullopt;
  }
  /// The elements of a vector, of `width` bytes each; empty if the table does not have it.
  [[nodiscard]] FlatVector vector(unsigned field_number, std::uint64_t width) const {
    const std::optional<std::uint64_t> at = field(field_number);
    if (!at) return {};
    const std::uint64_t begin = file_->follow(*at);
    const auto size = file_->number<std::uint32_t>(begin);
    (void)file_->part(begin + 4, size * width);
    return {begin + 4, size};
  }
  [[nodiscard]] std::string_view text(unsigned field_number) const {
    const FlatVector letters = vector(field_number, 1);
    const std::span<const std::byte> bytes = file_->part(letters.begin, letters.size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// A table of a vector of tables.
  [[nodiscard]] FlatTable element(const FlatVector& tables, std::uint32_t index) const {
    return {*file_, file_->follow(tables.begin + 4 * std::uint64_t{index})};
  }

 private:
  const FlatFile* file_;
  std::uint64_t at_;
  std::uint64_t fields_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace normscope::checkpoint
