// The JSON header of a safetensors file: our events with all checks, against simdjson on demand, which reads
// the same fields without checking their values.

#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <simdjson.h>

#include <normscope/files/safetensors.hpp>

#include "pairs.hpp"

namespace normscope::bench {
namespace {

std::string header_of(std::size_t tensors) {
  std::string text = "{\"__metadata__\":{\"format\":\"pt\"}";
  for (std::size_t i = 0; i < tensors; ++i) {
    text += fmt::format(
        ",\"model.layers.{}.mlp.experts.{}.weight\":{{\"dtype\":\"BF16\",\"shape\":[4,{}],"
        "\"data_offsets\":[{},{}]}}",
        i / 64, i % 64, 2, 16 * i, 16 * (i + 1));
  }
  return text + "}";
}

/// The sum of all offsets and extents, in which both readers must agree.
using Summary = std::vector<double>;

Summary read_with_simdjson(simdjson::ondemand::parser& parser, const simdjson::padded_string& text) {
  Summary summary(3);
  simdjson::ondemand::document document = parser.iterate(text);
  for (auto field : document.get_object()) {
    const std::string_view name = field.unescaped_key();
    if (name == "__metadata__") continue;
    simdjson::ondemand::object tensor = field.value().get_object();
    const std::string_view dtype = tensor["dtype"].get_string();
    summary[0] += static_cast<double>(name.size() + dtype.size());
    for (auto extent : tensor["shape"].get_array()) {
      summary[1] += static_cast<double>(std::uint64_t(extent.get_uint64()));
    }
    for (auto offset : tensor["data_offsets"].get_array()) {
      summary[2] += static_cast<double>(std::uint64_t(offset.get_uint64()));
    }
  }
  return summary;
}

}  // namespace

void header_rows(bool quick, const Show& show) {
  for (const std::size_t tensors : {std::size_t{148}, quick ? std::size_t{2000} : std::size_t{20000}}) {
    const std::string text = header_of(tensors);
    const auto file = std::make_shared<std::vector<std::byte>>(8 + text.size() + 16 * tensors);
    const std::uint64_t length = text.size();
    std::memcpy(file->data(), &length, 8);
    std::memcpy(file->data() + 8, text.data(), text.size());
    const auto own = std::make_shared<Summary>();
    const auto run = [=] {
      const std::span<const std::byte> bytes(*file);
      const files::SafetensorsContents contents = files::parse_safetensors({bytes}, "bench");
      *own = Summary(3);
      const std::byte* const data = bytes.data() + bytes.size() - 16 * tensors;
      for (const files::Tensor& tensor : contents.tensors) {
        (*own)[0] += static_cast<double>(tensor.name.size() + to_string(tensor.dtype).size());
        for (const std::uint64_t extent : tensor.shape) (*own)[1] += static_cast<double>(extent);
        const auto begin = static_cast<double>(tensor.bytes.memory().data() - data);
        (*own)[2] += 2.0 * begin + static_cast<double>(tensor.bytes.size());
      }
    };
    const auto padded = std::make_shared<simdjson::padded_string>(text);
    const auto parser = std::make_shared<simdjson::ondemand::parser>();
    const auto theirs = std::make_shared<Summary>();
    show(compare(
        "header", {.text = std::to_string(tensors), .dtype = "JSON"},
        {"normscope", run, [=] { return *own; }},
        {{"simdjson", [=] { *theirs = read_with_simdjson(*parser, *padded); }, [=] { return *theirs; }}}, 11,
        0.0));
  }
}

}  // namespace normscope::bench
