#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/checkpoint/safetensors.hpp>

#include "json_events.hpp"

namespace normscope::checkpoint {

/// The longest header that is read or written, in bytes; readers of the format refuse longer ones.
inline constexpr std::size_t longest_safetensors_header = 100'000'000;
/// Memory needed for a header's tensors and metadata.

/// Amounts of memory that a header's tensors and metadata need.
struct HeaderSizes {
  std::size_t tensors = 0;
  std::size_t extents = 0;
  std::size_t escaped_bytes = 0;   ///< an upper bound
  std::size_t metadata_bytes = 0;  ///< an upper estimate, including containers

  [[nodiscard]] std::size_t memory() const {
    return tensors * sizeof(Tensor) + extents * sizeof(std::uint64_t) + escaped_bytes + metadata_bytes;
  }
};

/// Reads the JSON object of a safetensors header and checks each tensor separately: fields, dtype, shape, and
/// that its offsets enclose shape × dtype bytes within the data. The caller checks gaps, overlaps and
/// duplicate names. Runs twice over an untrusted header: first to measure, then to fill memory of the
/// measured size.
class SafetensorsHeader : public JsonEvents {
 public:
  /// Only measures if `contents` is null; otherwise it must have the measured capacity.
  SafetensorsHeader(std::string_view text, const bytes::StoredBytes& data, const std::string& where,
                    std::size_t memory_limit, SafetensorsContents* contents)
      : JsonEvents(where), text_(text), data_(data), memory_limit_(memory_limit), contents_(contents) {}

  /// Errors    Format, Shape, Unsupported
  HeaderSizes read();

  bool start_object(std::size_t count) override;
  bool end_object() override;
  bool start_array(std::size_t count) override;
  bool end_array() override;
  bool key(std::string& text) override;
  bool string(std::string& text) override;
  bool number_unsigned(number_unsigned_t value) override;

 protected:
  [[nodiscard]] std::string misplaced(std::string_view found) const override;

 private:
  /// The element of the header that is expected next.
  enum class Expect {
    header,
    name,
    tensor,
    field,
    dtype,
    shape,
    extent,
    data_offsets,
    offset,
    metadata,
    metadata_key,
    metadata_value,
  };

  [[nodiscard]] std::string place() const;
  void begin_tensor();
  void begin_field(std::string_view field);
  void end_tensor();
  [[nodiscard]] std::string_view stored_name();
  void check_memory() const;

  std::string_view text_;
  bytes::StoredBytes data_;
  std::size_t memory_limit_;
  SafetensorsContents* contents_;
  std::size_t position_ = 0;
  HeaderSizes sizes_;

  Expect expect_ = Expect::header;
  bool seen_metadata_ = false;
  std::string name_;           ///< of the current tensor
  std::string_view raw_name_;  ///< as spelled in the header
  std::string metadata_key_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  Dtype dtype_ = Dtype::F32;
  std::uint64_t elements_ = 1;
  std::size_t rank_ = 0;
  bool overflows_ = false;
  std::uint64_t offsets_[2] = {0, 0};
  std::size_t offset_count_ = 0;
};

}  // namespace normscope::checkpoint
