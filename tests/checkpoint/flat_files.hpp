#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bytes/zip_files.hpp"

namespace normscope::test {

/// A table or vector of FlatBuffers with everything it refers to. Offsets are relative, so that a part can be
/// anywhere.
struct FlatPart {
  std::string bytes;
  std::size_t start = 0;  ///< of the table or vector itself
};

/// A field of a table: a number, or what an offset refers to.
struct FlatField {
  FlatField(std::string bytes) : number(std::move(bytes)) {}
  FlatField(FlatPart other) : part(std::move(other)) {}

  std::string number{};
  std::optional<FlatPart> part{};
};

inline std::string flat_offset(std::size_t from, std::size_t to) {
  return le(static_cast<std::uint32_t>(to - from));
}

/// A table with these fields, by their numbers.
inline FlatPart flat_table(const std::map<unsigned, FlatField>& fields) {
  const std::size_t listed = fields.empty() ? 0 : fields.rbegin()->first + 1;
  std::vector<std::uint16_t> places(listed, 0);
  std::size_t size = 4;
  for (const auto& [number, field] : fields) {
    places[number] = static_cast<std::uint16_t>(size);
    size += field.part ? 4 : field.number.size();
  }
  FlatPart table;
  table.bytes = le(static_cast<std::uint16_t>(4 + 2 * listed)) + le(static_cast<std::uint16_t>(size));
  for (const std::uint16_t place : places) table.bytes += le(place);
  table.start = table.bytes.size();
  table.bytes += le(static_cast<std::int32_t>(table.start));
  std::string behind;
  for (const auto& [number, field] : fields) {
    if (field.part) {
      const std::size_t at = table.bytes.size();
      table.bytes += flat_offset(at, table.start + size + behind.size() + field.part->start);
      behind += field.part->bytes;
    } else {
      table.bytes += field.number;
    }
  }
  table.bytes += behind;
  return table;
}

/// A vector of numbers, whose bytes are `elements`.
inline FlatPart flat_numbers(std::size_t count, const std::string& elements) {
  return {le(static_cast<std::uint32_t>(count)) + elements};
}
inline FlatPart flat_text(const std::string& text) { return flat_numbers(text.size(), text); }

inline FlatPart flat_tables(const std::vector<FlatPart>& tables) {
  FlatPart vector{le(static_cast<std::uint32_t>(tables.size()))};
  std::string behind;
  for (const FlatPart& table : tables) {
    const std::size_t at = vector.bytes.size();
    vector.bytes += flat_offset(at, 4 + 4 * tables.size() + behind.size() + table.start);
    behind += table.bytes;
  }
  vector.bytes += behind;
  return vector;
}

}  // namespace normscope::test
