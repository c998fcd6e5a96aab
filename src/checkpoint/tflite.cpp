#include "tflite.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/core/assert.hpp>

#include "flat_table.hpp"

namespace normscope::checkpoint {
namespace {

constexpr std::uint32_t most_tflite_axes = 64;
constexpr std::uint32_t longest_tflite_name = 4096;

/// Indices of the fields of Model, SubGraph, Tensor, Buffer and QuantizationParameters.
enum : unsigned {
  model_subgraphs = 2,
  model_buffers = 4,
  subgraph_tensors = 0,
  tensor_shape = 0,
  tensor_type = 1,
  tensor_buffer = 2,
  tensor_name = 3,
  tensor_quantization = 4,
  tensor_sparsity = 6,
  buffer_data = 0,
  buffer_offset = 1,
  buffer_size = 2,
  quantization_scale = 2,
  quantization_zero_point = 3,
  quantization_axis = 6,
};

std::optional<Dtype> tflite_dtype(std::int8_t number) {
  switch (number) {
    case 0: return Dtype::F32;
    case 1: return Dtype::F16;
    case 2: return Dtype::I32;
    case 3: return Dtype::U8;
    case 4: return Dtype::I64;
    case 6: return Dtype::BOOL;
    case 7: return Dtype::I16;
    case 8: return Dtype::C64;
    case 9: return Dtype::I8;
    case 10: return Dtype::F64;
    case 12: return Dtype::U64;
    case 15: return Dtype::U32;
    case 16: return Dtype::U16;
    case 18: return Dtype::BF16;
    default: return std::nullopt;  // text, resources and numbers of 4 bits
  }
}

/// The quantization of a tensor of integers: entry i of an axis has scale and zero point i, or all entries
/// have the first.
struct TfliteScales {
  std::span<const std::byte> scales{};       ///< float32
  std::span<const std::byte> zero_points{};  ///< int64; empty for 0
  std::uint64_t inner = 1;                   ///< elements for each entry of the axis
  std::uint64_t entries = 1;
};

/// Integers of a tensor as float32.
class ScaledIntegers : public bytes::Source {
 public:
  ScaledIntegers(std::span<const std::byte> stored, Dtype dtype, const TfliteScales& scales)
      : stored_(stored), dtype_(dtype), width_(bits(dtype) / 8), scales_(scales) {}

  [[nodiscard]] std::uint64_t size() const override { return stored_.size() / width_ * sizeof(float); }
  /// Requires  whole elements
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    NORMSCOPE_ASSERT(offset % sizeof(float) == 0 && out.size() % sizeof(float) == 0);
    const std::uint64_t first = offset / sizeof(float);
    std::vector<double> integers(out.size() / sizeof(float));
    decode(dtype_, stored_.subspan(static_cast<std::size_t>(first * width_), integers.size() * width_),
           integers);
    for (std::size_t i = 0; i < integers.size(); ++i) {
      const auto entry = static_cast<std::size_t>((first + i) / scales_.inner % scales_.entries);
      const auto scale = bytes::load<float>(scales_.scales.subspan(entry * sizeof(float), sizeof(float)));
      double zero = 0.0;
      if (!scales_.zero_points.empty()) {
        zero = static_cast<double>(bytes::load<std::int64_t>(scales_.zero_points.subspan(entry * 8, 8)));
      }
      const float value = scale * static_cast<float>(integers[i] - zero);
      std::memcpy(&out[i * sizeof value], &value, sizeof value);
    }
  }

 private:
  std::span<const std::byte> stored_;
  Dtype dtype_;
  std::size_t width_;
  TfliteScales scales_;
};

/// Types of scaled integers, for lists; they are decoded by `ScaledIntegers` alone.
const BlockFormat* scaled_format(Dtype dtype) {
  static constexpr auto elsewhere = [](const std::byte*, float*) {};
  static constexpr BlockFormat formats[] = {
      {"I8 scaled", 1, 1, elsewhere}, {"U8 scaled", 1, 1, elsewhere}, {"I16 scaled", 1, 2, elsewhere}};
  switch (dtype) {
    case Dtype::I8: return &formats[0];
    case Dtype::U8: return &formats[1];
    case Dtype::I16: return &formats[2];
    default: return nullptr;
  }
}

class TfliteReader {
 public:
  TfliteReader(std::span<const std::byte> bytes, const std::string& where)
      : file_(bytes, where), parsed_{Arena(bytes.size(), where)} {}

  ParsedFile read() {
    const FlatTable model(file_, file_.follow(0));
    const FlatVector buffers = model.vector(model_buffers, 4);
    const FlatVector graphs = model.vector(model_subgraphs, 4);
    for (std::uint32_t i = 0; i < graphs.size; ++i) {
      const FlatTable graph = model.element(graphs, i);
      const FlatVector tensors = graph.vector(subgraph_tensors, 4);
      // The cost of reading a graph is counted, so that a graph that is listed many times takes bounded time.
      parsed_.arena.charge(std::uint64_t{tensors.size} + 1, 4);
      for (std::uint32_t j = 0; j < tensors.size; ++j) read_tensor(model, buffers, graph.element(tensors, j));
    }
    tell_apart();
    sort_tensors(parsed_.tensors, file_.where() + ":");
    return std::move(parsed_);
  }

 private:
  void read_tensor(const FlatTable& model, const FlatVector& buffers, const FlatTable& stored) {
    const auto number = stored.number<std::uint32_t>(tensor_buffer);
    if (number >= buffers.size) {
      file_.fail(ErrorCode::Format, fmt::format("has a tensor in buffer {} of {}", number, buffers.size));
    }
    const std::span<const std::byte> data = data_of(model.element(buffers, number));
    const std::optional<Dtype> dtype = tflite_dtype(stored.number<std::int8_t>(tensor_type));
    if (data.empty() || !dtype) return;  // computed, or no numbers
    const std::string_view name = stored.text(tensor_name);
    if (name.size() > longest_tflite_name) {
      file_.fail(ErrorCode::Unsupported, fmt::format("has a name of {} bytes, expected at most {}",
                                                     name.size(), longest_tflite_name));
    }
    if (stored.field(tensor_sparsity)) {
      file_.fail(ErrorCode::Unsupported,
                 fmt::format("tensor {} is sparse, which is not read", bytes::quote(name)));
    }
    parsed_.arena.charge(growth, sizeof(Tensor));
    Tensor tensor{name, *dtype, read_shape(stored, name), bytes::StoredBytes(data), nullptr};
    check_tensor_size(tensor, file_.where());
    if (const std::optional<TfliteScales> scales = scales_of(stored, tensor)) {
      tensor.blocks = scaled_format(*dtype);
      parsed_.arena.charge(1, sizeof(ScaledIntegers) + 64);
      parsed_.views.push_back(std::make_unique<ScaledIntegers>(data, *dtype, *scales));
      tensor.dtype = Dtype::F32;
      tensor.bytes = bytes::StoredBytes(*parsed_.views.back());
    }
    parsed_.tensors.push_back(tensor);
  }

  [[nodiscard]] std::span<const std::byte> data_of(const FlatTable& buffer) const {
    // Data of large models lie behind the tables.
    const auto offset = buffer.number<std::uint64_t>(buffer_offset);
    if (offset > 1) return file_.part(offset, buffer.number<std::uint64_t>(buffer_size));
    const FlatVector data = buffer.vector(buffer_data, 1);
    return file_.part(data.begin, data.size);
  }

  std::span<const std::uint64_t> read_shape(const FlatTable& stored, std::string_view name) {
    const FlatVector extents = stored.vector(tensor_shape, 4);
    if (extents.size > most_tflite_axes) {
      file_.fail(ErrorCode::Unsupported, fmt::format("tensor {} has {} axes, expected at most {}",
                                                     bytes::quote(name), extents.size, most_tflite_axes));
    }
    const std::span<std::uint64_t> shape = parsed_.arena.allocate<std::uint64_t>(extents.size);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const auto extent = file_.number<std::int32_t>(extents.begin + 4 * axis);
      if (extent < 0) {
        file_.fail(ErrorCode::Format, fmt::format("tensor {} has an axis of {}", bytes::quote(name), extent));
      }
      shape[axis] = static_cast<std::uint64_t>(extent);
    }
    return shape;
  }

  /// The scales of a tensor of integers; empty if it has none.
  [[nodiscard]] std::optional<TfliteScales> scales_of(const FlatTable& stored, const Tensor& tensor) const {
    const std::optional<FlatTable> quantization = stored.table(tensor_quantization);
    if (!quantization || scaled_format(tensor.dtype) == nullptr) return std::nullopt;
    const FlatVector scales = quantization->vector(quantization_scale, 4);
    const FlatVector zeros = quantization->vector(quantization_zero_point, 8);
    if (scales.size == 0) return std::nullopt;
    TfliteScales found;
    found.scales = file_.part(scales.begin, 4 * std::uint64_t{scales.size});
    found.zero_points = file_.part(zeros.begin, 8 * std::uint64_t{zeros.size});
    found.entries = scales.size;
    const auto axis = static_cast<std::uint32_t>(quantization->number<std::int32_t>(quantization_axis));
    const bool of_all = scales.size == 1;
    if ((!of_all && (axis >= tensor.shape.size() || tensor.shape[axis] != scales.size)) ||
        (zeros.size != 0 && zeros.size != scales.size)) {
      file_.fail(ErrorCode::Format, fmt::format("tensor {} has {} scales and {} zero points for axis {}",
                                                bytes::quote(tensor.name), scales.size, zeros.size, axis));
    }
    if (of_all) return found;
    for (std::size_t behind = axis + 1; behind < tensor.shape.size(); ++behind)
      found.inner *= tensor.shape[behind];
    return found;
  }

  /// Numbers tensors that have the same name.
  void tell_apart() {
    std::vector<Tensor>& tensors = parsed_.tensors;
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
    for (std::size_t i = 0; i < tensors.size();) {
      std::size_t same = 1;
      for (; i + same < tensors.size() && tensors[i + same].name == tensors[i].name; ++same) {
        const std::string name = fmt::format("{}#{}", tensors[i].name, same + 1);
        const std::span<char> kept = parsed_.arena.allocate<char>(name.size());
        std::copy(name.begin(), name.end(), kept.begin());
        tensors[i + same].name = {kept.data(), kept.size()};
      }
      i += same;
    }
  }

  FlatFile file_;
  ParsedFile parsed_;
};

}  // namespace

ParsedFile parse_tflite(std::span<const std::byte> bytes, const std::string& where) {
  return TfliteReader(bytes, where).read();
}

}  // namespace normscope::checkpoint
