#include "onnx_graph_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>

#include "onnx_tensor.hpp"
#include "protobuf.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

/// The parts of an AttributeProto that are used.
struct Attribute {
  std::string_view name;
  std::optional<WireField> real;
  std::optional<std::int64_t> integer;
  std::optional<Bytes> tensor;
  std::vector<std::int64_t> integers;
};

Attribute read_attribute(Bytes message, Arena& arena, const std::string& where) {
  Attribute attribute;
  WireReader reader(message, "AttributeProto", where);
  while (const std::optional<WireField> field = reader.next()) {
    switch (field->number) {
      case 1: attribute.name = reader.text(*field); break;
      case 2: attribute.real = field; break;
      case 3: attribute.integer = static_cast<std::int64_t>(reader.integer(*field)); break;
      case 5: attribute.tensor = reader.bytes(*field); break;
      case 8:
        reader.integers(*field, [&](std::uint64_t value) {
          arena.charge(growth, sizeof value);
          attribute.integers.push_back(static_cast<std::int64_t>(value));
        });
        break;
      default: break;
    }
  }
  if (attribute.real) (void)reader.real(*attribute.real);
  return attribute;
}

}  // namespace

void OnnxGraphReader::add_constant(std::string_view name, Dtype dtype, std::span<const std::uint64_t> shape,
                                   Bytes bytes, std::vector<Tensor>& tensors) {
  arena_.charge(growth, sizeof(Tensor));
  const std::span<std::uint64_t> own_shape = arena_.allocate<std::uint64_t>(shape.size());
  std::copy(shape.begin(), shape.end(), own_shape.begin());
  tensors.push_back({name, dtype, own_shape, bytes});
}

void OnnxGraphReader::add_attribute(Bytes message, OnnxNode& node, std::vector<Tensor>& tensors) {
  const Attribute attribute = read_attribute(message, arena_, where_);
  if (attribute.name == "axis") node.axis = attribute.integer;
  if (attribute.name == "transA") node.transposes_a = attribute.integer.value_or(0) != 0;
  if (attribute.name == "transB") node.transposes_b = attribute.integer.value_or(0) != 0;
  if (attribute.name == "axes") {
    node.has_axes = true;
    if (attribute.integers.size() == 1) node.only_axis = attribute.integers[0];
  }
  if (attribute.name == "epsilon" && attribute.real) {
    float epsilon = 0;
    std::memcpy(&epsilon, attribute.real->bytes.data(), sizeof epsilon);
    node.epsilon = epsilon;
  }
  if (node.op != "Constant" || arities_.back().outputs == 0) return;
  const std::string_view name = operands_.back();
  if (attribute.name == "value" && attribute.tensor) {
    arena_.charge(growth, sizeof(Tensor));
    if (const auto tensor = read_onnx_tensor(*attribute.tensor, name, arena_, where_))
      tensors.push_back(*tensor);
  } else if (attribute.name == "value_float" && attribute.real) {
    add_constant(name, Dtype::F32, {}, attribute.real->bytes, tensors);
  } else if (attribute.name == "value_ints") {
    const std::uint64_t shape[] = {attribute.integers.size()};
    const std::span<std::int64_t> values = arena_.allocate<std::int64_t>(shape[0]);
    std::copy(attribute.integers.begin(), attribute.integers.end(), values.begin());
    add_constant(name, Dtype::I64, shape, std::as_bytes(values), tensors);
  }
}

void OnnxGraphReader::add_node(Bytes message, std::vector<Tensor>& tensors) {
  arena_.charge(growth, sizeof(OnnxNode) + sizeof(Arity));
  OnnxNode& node = graph_.nodes_.emplace_back();
  Arity& arity = arities_.emplace_back();
  const auto reread = [&](std::uint64_t number, const auto& take) {
    WireReader reader(message, "NodeProto", where_);
    while (const std::optional<WireField> field = reader.next()) {
      if (field->number == number) take(reader, *field);
    }
  };
  const auto add_operand = [&](const WireReader& reader, const WireField& field) {
    arena_.charge(growth, 2 * sizeof(std::string_view) + 6 * sizeof(ValueId));
    operands_.push_back(reader.text(field));
  };
  const std::size_t first = operands_.size();
  reread(1, add_operand);
  arity.inputs = operands_.size() - first;
  reread(2, add_operand);
  arity.outputs = operands_.size() - first - arity.inputs;
  reread(3, [&](const WireReader& reader, const WireField& field) { node.name = reader.text(field); });
  reread(4, [&](const WireReader& reader, const WireField& field) { node.op = reader.text(field); });
  reread(5, [&](const WireReader& reader, const WireField& field) {
    add_attribute(reader.bytes(field), node, tensors);
  });
}

/// Assigns a number to every name, and to every operand the number of its name.
void OnnxGraphReader::name_values() {
  graph_.names_ = operands_;
  std::sort(graph_.names_.begin(), graph_.names_.end());
  graph_.names_.erase(std::unique(graph_.names_.begin(), graph_.names_.end()), graph_.names_.end());
  graph_.ids_.reserve(operands_.size());
  for (const std::string_view operand : operands_) {
    const auto at =
        std::lower_bound(graph_.names_.begin(), graph_.names_.end(), operand) - graph_.names_.begin();
    graph_.ids_.push_back(operand.empty() ? no_value : static_cast<ValueId>(at));
  }
}

OnnxGraph OnnxGraphReader::link(std::span<const Tensor> tensors, std::size_t stored_bytes) {
  graph_.stored_bytes_ = stored_bytes;
  name_values();
  graph_.constants_.assign(graph_.names_.size(), nullptr);
  for (const Tensor& tensor : tensors) {
    const auto at = std::lower_bound(graph_.names_.begin(), graph_.names_.end(), tensor.name);
    if (at != graph_.names_.end() && *at == tensor.name)
      graph_.constants_[at - graph_.names_.begin()] = &tensor;
  }

  graph_.makers_.assign(graph_.names_.size(), OnnxGraph::no_node);
  graph_.takers_begin_.assign(graph_.names_.size() + 1, 0);
  std::span<const ValueId> rest = graph_.ids_;
  for (std::uint32_t i = 0; i < graph_.nodes_.size(); ++i) {
    OnnxNode& node = graph_.nodes_[i];
    node.inputs = rest.first(arities_[i].inputs);
    node.outputs = rest.subspan(arities_[i].inputs, arities_[i].outputs);
    rest = rest.subspan(arities_[i].inputs + arities_[i].outputs);
    for (const ValueId output : node.outputs) {
      if (output == no_value) continue;
      if (graph_.makers_[output] != OnnxGraph::no_node) {
        throw Error(ErrorCode::Format, fmt::format("{}: value {} is the output of two nodes", where_,
                                                   bytes::quote(graph_.names_[output])));
      }
      graph_.makers_[output] = i;
    }
    for (const ValueId input : node.inputs) {
      if (input != no_value) ++graph_.takers_begin_[input + 1];
    }
  }

  for (std::size_t value = 0; value < graph_.names_.size(); ++value)
    graph_.takers_begin_[value + 1] += graph_.takers_begin_[value];
  graph_.takers_.resize(graph_.takers_begin_.back());
  std::vector<std::uint32_t> next(graph_.takers_begin_.begin(), graph_.takers_begin_.end() - 1);
  for (std::uint32_t i = 0; i < graph_.nodes_.size(); ++i) {
    for (const ValueId input : graph_.nodes_[i].inputs) {
      if (input != no_value) graph_.takers_[next[input]++] = i;
    }
  }
  return std::move(graph_);
}

}  // namespace normscope::checkpoint
