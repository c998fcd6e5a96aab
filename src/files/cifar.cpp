#include <normscope/files/cifar.hpp>

#include <array>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "packed_source.hpp"

namespace normscope::files {
namespace {

constexpr std::size_t pixels = 3072;
constexpr int classes = 10;

}  // namespace

LabelledImages read_cifar10(std::span<const std::byte> bytes, const std::string& where) {
  PackedSource source(bytes, where);
  LabelledImages result{{{}, Dtype::U8, {}}, {{}, Dtype::U8, {}}};
  std::array<std::byte, 1 + pixels> record{};
  std::uint64_t rows = 0;
  for (; const std::size_t count = source.take(record); ++rows) {
    if (count != record.size()) {
      throw Error(ErrorCode::Format,
                  fmt::format("{}: ends within record {}, expected records of 3073 bytes", where, rows));
    }
    const int label = std::to_integer<int>(record[0]);
    if (label >= classes) {
      throw Error(ErrorCode::Format,
                  fmt::format("{}: the class of record {} is {}, expected 0 to 9", where, rows, label));
    }
    result.labels.values.push_back(label);
    for (std::size_t i = 1; i <= pixels; ++i) {
      result.images.values.push_back(std::to_integer<int>(record[i]));
    }
  }
  source.finish();
  if (rows == 0) throw Error(ErrorCode::Format, fmt::format("{}: has no records", where));
  result.labels.shape = {rows};
  result.images.shape = {rows, 3, 32, 32};
  return result;
}

}  // namespace normscope::files
