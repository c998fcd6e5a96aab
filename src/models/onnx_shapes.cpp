#include "onnx_pattern.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

namespace normscope::models {
namespace {

using files::no_value;
using files::OnnxAttribute;
using files::OnnxGraph;
using files::OnnxNode;
using files::Tensor;
using files::ValueId;
using Extents = OnnxShapes::Extents;
using Type = OnnxAttribute::Type;

constexpr std::size_t most_extents = 8;
/// A number in a list of integers that is computed and not followed.
constexpr std::int64_t unknown_number = std::numeric_limits<std::int64_t>::min();
/// Memory of an entry in a map from values to extents.
constexpr std::size_t shape_entry_bytes = 96 + most_extents * sizeof(std::int64_t);

bool names(std::initializer_list<std::string_view> ops, std::string_view op) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// Operators whose output has the extents of their first input.
bool keeps_extents(const OnnxNode& node) {
  constexpr const char* same[] = {"Identity",
                                  "Cast",
                                  "Relu",
                                  "Sigmoid",
                                  "Tanh",
                                  "Gelu",
                                  "Erf",
                                  "Sqrt",
                                  "Reciprocal",
                                  "Exp",
                                  "Log",
                                  "Neg",
                                  "Abs",
                                  "Softmax",
                                  "LogSoftmax",
                                  "Dropout",
                                  "Clip",
                                  "LeakyRelu",
                                  "Elu",
                                  "HardSwish",
                                  "HardSigmoid",
                                  "Softplus",
                                  "Sign",
                                  "Floor",
                                  "LayerNormalization",
                                  "RMSNormalization",
                                  "SimplifiedLayerNormalization",
                                  "BatchNormalization",
                                  "InstanceNormalization",
                                  "GroupNormalization",
                                  "LpNormalization",
                                  "QuantizeLinear",
                                  "DequantizeLinear",
                                  "CumSum",
                                  "Trilu"};
  constexpr const char* of_microsoft[] = {"FastGelu",
                                          "Gelu",
                                          "BiasGelu",
                                          "QuickGelu",
                                          "SkipLayerNormalization",
                                          "SkipSimplifiedLayerNormalization"};
  const auto is = [&](const char* op) { return node.op == op; };
  if (node.is_standard) return std::any_of(std::begin(same), std::end(same), is);
  return node.domain == "com.microsoft" && std::any_of(std::begin(of_microsoft), std::end(of_microsoft), is);
}

std::optional<Extents> broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    std::int64_t& extent = result[result.size() - 1 - i];
    if (x > 1 && y > 1 && x != y) return {};
    // An extent that is not known is 1 or that of the other.
    extent = x > 1 || y > 1 ? std::max(x, y) : std::min(x, y);
  }
  return result;
}

/// The indices of `axes`, ascending; empty if one of them is none or comes twice.
std::optional<std::vector<std::size_t>> indices_of(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<std::size_t> result;
  for (const std::int64_t axis : axes) {
    const std::optional<std::int64_t> behind = from_end(axis, rank);
    if (!behind) return {};
    result.push_back(static_cast<std::size_t>(static_cast<std::int64_t>(rank) + *behind));
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) return {};
  return result;
}

bool is_binary(const OnnxNode& node) {
  return names(
      {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Equal", "Less", "Greater", "And", "Or", "Mod"},
      node.op);
}

std::optional<Extents> product_extents(const Extents& a, const Extents& b) {
  if (a.size() < 2 || b.size() < 2) return {};
  std::optional<Extents> result = broadcast(Extents(a.begin(), a.end() - 2), Extents(b.begin(), b.end() - 2));
  if (!result) return {};
  result->push_back(a[a.size() - 2]);
  result->push_back(b.back());
  return result;
}

}  // namespace

std::optional<std::vector<std::int64_t>> constant_integers(const OnnxGraph& graph, ValueId value) {
  const Tensor* const tensor = graph.constant(value);
  if (tensor == nullptr || tensor->shape.size() > 1 || tensor->elements() > most_extents) return {};
  if (tensor->dtype != Dtype::I64 && tensor->dtype != Dtype::I32) return {};
  std::vector<std::int64_t> result;
  for (const double number : read(*tensor)) {
    constexpr double largest = 9007199254740992.0;  // 2^53: read gives doubles
    result.push_back(std::clamp(number, -largest, largest) == number ? static_cast<std::int64_t>(number)
                     : number > 0 ? std::numeric_limits<std::int64_t>::max()
                                  : unknown_number);
  }
  return result;
}

std::optional<std::vector<std::int64_t>> axes_of(const OnnxGraph& graph, const OnnxNode& node,
                                                 std::span<const OnnxNode::Known> known) {
  if (!node.has_only(known) || node.inputs.size() > 2) return {};
  const OnnxAttribute* const attribute = node.attribute("axes");
  const ValueId input = node.input(1);
  if (attribute != nullptr) {
    if (input != no_value || attribute->integers.size() > most_extents) return {};
    return std::vector<std::int64_t>(attribute->integers.begin(), attribute->integers.end());
  }
  if (input == no_value) return std::vector<std::int64_t>();
  return constant_integers(graph, input);
}

std::optional<std::vector<std::int64_t>> reduced_axes(const OnnxGraph& graph, const OnnxNode& node) {
  constexpr OnnxNode::Known known[] = {
      {"axes", Type::integers}, {"keepdims", Type::integer}, {"noop_with_empty_axes", Type::integer}};
  return axes_of(graph, node, known);
}

std::optional<std::int64_t> from_end(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) return {};
  return axis < 0 ? axis : axis - count;
}

OnnxShapes::OnnxShapes(const OnnxGraph& graph, const std::function<void(std::size_t)>& charge)
    : graph_(graph), charge_(charge) {
  for (const files::OnnxExtents& stated : graph.stated_extents()) {
    if (stated.extents.size() > most_extents) continue;
    keep(stated.value, Extents(stated.extents.begin(), stated.extents.end()));
  }
  for (const OnnxNode& node : graph.nodes()) {
    const ValueId output = node.output();
    if (output == no_value) continue;
    if (const std::optional<Extents> list = infer_numbers(node); list && list->size() <= most_extents) {
      charge_(shape_entry_bytes);
      numbers_.emplace(output, *list);
    }
    std::optional<Extents> inferred = infer(node);
    if (!inferred || inferred->size() > most_extents) continue;
    const auto stated = extents_.find(output);
    if (stated == extents_.end()) {
      keep(output, *inferred);
      continue;
    }
    Extents& kept = stated->second;
    bool agree = kept.size() == inferred->size();
    for (std::size_t i = 0; agree && i < kept.size(); ++i) {
      agree = kept[i] == unknown_extent || (*inferred)[i] == unknown_extent || kept[i] == (*inferred)[i];
      kept[i] = std::max(kept[i], (*inferred)[i]);
    }
    if (!agree) extents_.erase(stated);
  }
}

void OnnxShapes::keep(ValueId value, const Extents& extents) {
  charge_(shape_entry_bytes);
  extents_.insert_or_assign(value, extents);
}

std::optional<Extents> OnnxShapes::of(ValueId value) const {
  if (value == no_value) return {};
  if (const Tensor* const tensor = graph_.constant(value)) {
    if (tensor->shape.size() > most_extents) return {};
    Extents extents;
    for (const std::uint64_t extent : tensor->shape) extents.push_back(static_cast<std::int64_t>(extent));
    return extents;
  }
  const auto found = extents_.find(value);
  return found == extents_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Extents> OnnxShapes::numbers(ValueId value) const {
  if (std::optional<Extents> list = constant_integers(graph_, value)) return list;
  const auto found = numbers_.find(value);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Extents> OnnxShapes::shape_of_input(const OnnxNode& node) const {
  constexpr OnnxNode::Known known[] = {{"start", Type::integer}, {"end", Type::integer}};
  std::optional<Extents> extents = of(node.input(0));
  if (!extents || !node.has_only(known)) return {};
  std::replace(extents->begin(), extents->end(), unknown_extent, unknown_number);
  const auto size = static_cast<std::int64_t>(extents->size());
  const auto place = [size](std::int64_t at) {
    return std::clamp(at < 0 ? at + size : at, std::int64_t{0}, size);
  };
  const std::int64_t first = place(node.integer("start", 0));
  const std::int64_t last = std::max(first, place(node.integer("end", size)));
  return Extents(extents->begin() + first, extents->begin() + last);
}

std::optional<Extents> OnnxShapes::infer_numbers(const OnnxNode& node) const {
  if (!node.is_standard) return {};
  if (node.op == "Shape") return shape_of_input(node);
  if (node.op == "Cast" || node.op == "Identity" || node.op == "Unsqueeze" || node.op == "Squeeze")
    return numbers(node.input(0));
  if (node.op == "Concat" && node.integer("axis", 0) == 0) {
    Extents all;
    for (const ValueId input : node.inputs) {
      const std::optional<Extents> part = numbers(input);
      if (!part || part->size() + all.size() > most_extents) return {};
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }
  const std::optional<Extents> from = numbers(node.input(0));
  if (!from) return {};
  const auto size = static_cast<std::int64_t>(from->size());
  if (node.op == "Gather" && node.integer("axis", 0) == 0) {
    const std::optional<Extents> at = constant_integers(graph_, node.input(1));
    if (!at) return {};
    Extents result;
    for (const std::int64_t index : *at) {
      if (index < -size || index >= size) return {};
      result.push_back((*from)[static_cast<std::size_t>(index < 0 ? index + size : index)]);
    }
    return result;
  }
  if (node.op == "Slice" && node.inputs.size() >= 3 && node.inputs.size() <= 5) {
    std::optional<Extents> part[4];
    for (std::size_t i = 0; i < 4; ++i) {
      const ValueId input = node.input(i + 1);
      part[i] = input == no_value && i >= 2 ? Extents{i == 2 ? 0 : 1} : constant_integers(graph_, input);
      if (!part[i] || part[i]->size() != 1) return {};
    }
    if (part[2]->front() != 0 || part[3]->front() != 1) return {};
    const auto place = [&](std::int64_t at) {
      return std::clamp(at < 0 ? at + size : at, std::int64_t{0}, size);
    };
    if (part[0]->front() == unknown_number || part[1]->front() == unknown_number) return {};
    const std::int64_t first = place(part[0]->front());
    const std::int64_t last = std::max(first, place(part[1]->front()));
    return Extents(from->begin() + first, from->begin() + last);
  }
  return {};
}

std::optional<Extents> OnnxShapes::reshaped(const OnnxNode& node) const {
  constexpr OnnxNode::Known known[] = {{"allowzero", Type::integer}};
  if (!node.has_only(known)) return {};
  const std::optional<Extents> in = of(node.input(0));
  const std::optional<Extents> target = numbers(node.input(1));
  if (!target) {
    const std::optional<Extents> length = of(node.input(1));
    if (!length || length->size() != 1 || length->front() < 0 || length->front() > std::int64_t{most_extents})
      return {};
    return Extents(static_cast<std::size_t>(length->front()), unknown_extent);
  }
  Extents out = *target;
  std::int64_t given = 1;
  std::int64_t* rest = nullptr;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t& extent = out[i];
    if (extent == 0) {
      if (node.integer("allowzero", 0) != 0 || !in || i >= in->size()) return {};
      extent = (*in)[i];
    } else if (extent == -1) {
      if (rest != nullptr) return {};
      rest = &extent;
      continue;
    } else if (extent == unknown_number) {
      extent = unknown_extent;
    } else if (extent < 0) {
      return {};
    }
    if (extent == unknown_extent || __builtin_mul_overflow(given, extent, &given)) given = 0;
  }
  if (rest == nullptr || !in || given == 0) return out;
  std::int64_t total = 1;
  for (const std::int64_t extent : *in) {
    if (extent == unknown_extent || __builtin_mul_overflow(total, extent, &total)) return out;
  }
  if (total % given == 0 && total >= given) *rest = total / given;
  return out;
}

std::optional<Extents> OnnxShapes::concatenated(const OnnxNode& node) const {
  std::optional<Extents> result = of(node.input(0));
  if (!result) return {};
  const std::optional<std::int64_t> axis = from_end(node.integer("axis", 0), result->size());
  if (!axis) return {};
  std::fill(result->begin(), result->end(), unknown_extent);
  for (const ValueId input : node.inputs) {
    const std::optional<Extents> part = of(input);
    if (!part || part->size() != result->size()) return {};
    for (std::size_t i = 0; i < part->size(); ++i) (*result)[i] = std::max((*result)[i], (*part)[i]);
  }
  (*result)[result->size() - static_cast<std::size_t>(-*axis)] = unknown_extent;
  return result;
}

std::optional<Extents> OnnxShapes::gathered(const OnnxNode& node) const {
  const std::optional<Extents> data = of(node.input(0));
  const std::optional<Extents> at = of(node.input(1));
  if (!data || !at) return {};
  const std::optional<std::int64_t> axis = from_end(node.integer("axis", 0), data->size());
  if (!axis) return {};
  const auto cut = data->end() + static_cast<std::ptrdiff_t>(*axis);
  Extents result(data->begin(), cut);
  result.insert(result.end(), at->begin(), at->end());
  result.insert(result.end(), cut + 1, data->end());
  return result;
}

std::optional<Extents> OnnxShapes::infer(const OnnxNode& node) const {
  if (keeps_extents(node)) return of(node.input(0));
  if (!node.is_standard) return {};
  if (node.op == "Shape") {
    const std::optional<Extents> shape = shape_of_input(node);
    return shape ? std::optional(Extents{static_cast<std::int64_t>(shape->size())}) : std::nullopt;
  }
  if (node.op == "Reshape") return reshaped(node);
  if (node.op == "Concat") return concatenated(node);
  if (node.op == "Gather") return gathered(node);
  const std::optional<Extents> in = of(node.input(0));
  if (!in) return {};
  const std::size_t rank = in->size();
  if (is_binary(node)) {
    if (!node.attributes.empty() || node.inputs.size() != 2) return {};
    const std::optional<Extents> other = of(node.input(1));
    return other ? broadcast(*in, *other) : std::nullopt;
  }
  if (node.op == "MatMul") {
    const std::optional<Extents> other = of(node.input(1));
    return other ? product_extents(*in, *other) : std::nullopt;
  }
  if (node.op == "Gemm") {
    const std::optional<Extents> other = of(node.input(1));
    if (!other || other->size() != 2) return {};
    return Extents{unknown_extent, (*other)[node.integer("transB", 0) != 0 ? 0 : 1]};
  }
  if (node.op == "Expand") {
    const std::optional<Extents> target = numbers(node.input(1));
    if (!target) return {};
    Extents extents = *target;
    for (std::int64_t& extent : extents) extent = extent > 0 ? extent : unknown_extent;
    return broadcast(*in, extents);
  }
  if (node.op == "Transpose") {
    const OnnxAttribute* const perm = node.attribute("perm");
    Extents out(in->rbegin(), in->rend());
    if (perm == nullptr) return out;
    const std::optional<std::vector<std::size_t>> all =
        indices_of({perm->integers.begin(), perm->integers.end()}, rank);
    const auto is_counted_from_end = [](std::int64_t axis) { return axis < 0; };
    if (!all || all->size() != rank ||
        std::any_of(perm->integers.begin(), perm->integers.end(), is_counted_from_end)) {
      return {};
    }
    for (std::size_t i = 0; i < rank; ++i) out[i] = (*in)[static_cast<std::size_t>(perm->integers[i])];
    return out;
  }
  if (node.op.starts_with("Reduce")) {
    const std::optional<std::vector<std::int64_t>> axes = reduced_axes(graph_, node);
    const auto at = axes ? indices_of(*axes, rank) : std::nullopt;
    if (!at || at->empty()) return {};
    Extents out = *in;
    for (auto i = at->rbegin(); i != at->rend(); ++i) {
      if (node.integer("keepdims", 1) != 0) {
        out[*i] = 1;
      } else {
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(*i));
      }
    }
    return out;
  }
  if (node.op == "Unsqueeze" || node.op == "Squeeze") {
    constexpr OnnxNode::Known known[] = {{"axes", Type::integers}};
    const bool adds = node.op == "Unsqueeze";
    const std::optional<std::vector<std::int64_t>> axes = axes_of(graph_, node, known);
    const auto at = axes ? indices_of(*axes, adds ? rank + axes->size() : rank) : std::nullopt;
    if (!at || at->empty()) return {};
    Extents out = *in;
    if (adds) {
      for (const std::size_t i : *at) out.insert(out.begin() + static_cast<std::ptrdiff_t>(i), 1);
    } else {
      for (auto i = at->rbegin(); i != at->rend(); ++i)
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(*i));
    }
    return out;
  }
  if (node.op == "GlobalMaxPool" || node.op == "GlobalAveragePool") {
    if (rank < 2) return {};
    Extents out(rank, 1);
    out[0] = (*in)[0];
    out[1] = (*in)[1];
    return out;
  }
  if (node.op == "Conv") {
    const std::optional<Extents> kernel = of(node.input(1));
    if (!kernel || kernel->size() != rank || rank < 2) return {};
    Extents out(rank, unknown_extent);
    out[0] = (*in)[0];
    out[1] = (*kernel)[0];
    return out;
  }
  // The extents that a slice keeps are not followed.
  if (names({"Slice", "Split", "MaxPool", "AveragePool", "Pad"}, node.op))
    return Extents(rank, unknown_extent);
  return {};
}

}  // namespace normscope::models
