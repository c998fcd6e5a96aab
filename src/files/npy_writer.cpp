#include <normscope/files/npy_writer.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/core.h>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/shape.hpp>

#include "npy.hpp"

namespace normscope::files {

Dtype npy_dtype(Dtype dtype) {
  if (dtype == Dtype::BF16) return Dtype::F32;
  return dtype == Dtype::F32 || dtype == Dtype::F16 ? dtype : Dtype::F64;
}

NpyWriter::NpyWriter(const std::filesystem::path& path, Dtype dtype, std::span<const std::uint64_t> shape)
    : file_(path), missing_(element_count(shape).value_or(0) * (bits(dtype) / 8)) {
  file_.write(npy_preamble(dtype, shape));
}

void NpyWriter::write(std::span<const std::byte> elements) {
  NORMSCOPE_ASSERT(elements.size() <= missing_);
  missing_ -= elements.size();
  file_.write(elements);
}

void NpyWriter::commit() {
  NORMSCOPE_ASSERT(missing_ == 0);
  file_.commit();
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  const std::optional<std::uint64_t> elements = element_count(array.shape);
  if (elements != array.values.size()) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("write_npy: {}: the shape has {} elements, expected {}, the number of values",
                    path.string(), elements ? std::to_string(*elements) : "too many", array.values.size()));
  }
  const Dtype dtype = npy_dtype(array.dtype);
  const std::size_t width = bits(dtype) / 8;
  constexpr std::size_t step = 8192;
  std::array<std::byte, step * sizeof(double)> buffer;
  NpyWriter file(path, dtype, array.shape);
  for (std::size_t begin = 0; begin < array.values.size(); begin += step) {
    const std::size_t count = std::min(step, array.values.size() - begin);
    const std::span<std::byte> bytes(buffer.data(), count * width);
    encode(dtype, std::span(array.values).subspan(begin, count), bytes);
    file.write(bytes);
  }
  file.commit();
}

}  // namespace normscope::files
