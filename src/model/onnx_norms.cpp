#include "onnx_norms.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "onnx_pattern.hpp"

namespace normscope::model {
namespace {

using checkpoint::no_value;
using checkpoint::OnnxGraph;
using checkpoint::OnnxNode;
using checkpoint::Tensor;
using checkpoint::ValueId;

/// Limits the memory of the list of norms: a graph may name a long tensor many times by a short alias.
class MemoryBudget {
 public:
  /// `file` is named in the error.
  MemoryBudget(std::size_t limit, std::string file) : limit_(limit), file_(std::move(file)) {}

  /// Counts `count` objects of `size` bytes.
  void charge(std::size_t count, std::size_t size) {
    if (size != 0 && count > (limit_ - used_) / size) {
      throw Error(
          ErrorCode::Unsupported,
          fmt::format("{}: the list of the graph's norms needs more than {} bytes of memory", file_, limit_));
    }
    used_ += count * size;
  }

 private:
  std::size_t limit_;
  std::string file_;
  std::size_t used_ = 0;
};

constexpr std::size_t memory_beyond_graph = std::size_t{32} << 20;
/// Peak memory of a growing vector per element, in elements.
constexpr std::size_t growth = 3;

/// An operator that is a norm, and the positions of its parameters among its inputs.
struct NormOp {
  std::string_view op;
  NormKind kind;
  std::size_t gain;
  std::size_t bias;
  double eps;  ///< the operator's default
};
constexpr std::size_t no_input = ~std::size_t{0};
constexpr NormOp norm_ops[] = {
    {"LayerNormalization", NormKind::layer, 1, 2, 1e-5},
    {"RMSNormalization", NormKind::rms, 1, no_input, 1e-5},
    {"SimplifiedLayerNormalization", NormKind::rms, 1, no_input, 1e-5},
    {"SkipLayerNormalization", NormKind::layer, 2, 3, 1e-12},
    {"SkipSimplifiedLayerNormalization", NormKind::rms, 2, no_input, 1e-12},
    {"EmbedLayerNormalization", NormKind::layer, 5, 6, 1e-12},
};

/// Properties of a norm collected for a StatedNorm.
struct Candidate {
  const OnnxNode* node = nullptr;
  NormKind kind = NormKind::layer;
  double eps = 0.0;
  const Tensor* gain = nullptr;
  const Tensor* bias = nullptr;
  std::uint64_t width = 0;
  std::optional<std::int64_t> axis{};
  const OnnxNode* root = nullptr;  ///< root of a norm expressed as arithmetic
  ValueId output = no_value;
};

/// The axis, counted from the end, along which a parameter's elements lie: its only axis longer than 1, or -1
/// if several last axes are normalized together. Empty for a shape that no norm has.
std::optional<std::int64_t> axis_along(const Tensor& parameter) {
  const std::span<const std::uint64_t> shape = parameter.shape;
  const auto is_long = [](std::uint64_t extent) { return extent != 1; };
  const auto first = std::find_if(shape.begin(), shape.end(), is_long);
  if (first == shape.end()) return -1;
  if (std::all_of(first, shape.end(), is_long)) return -1;
  if (std::count_if(first, shape.end(), is_long) != 1) return {};
  return first - shape.end();
}

std::optional<Candidate> found_as_op(const OnnxGraph& graph, const OnnxNode& node) {
  const auto* op = std::find_if(std::begin(norm_ops), std::end(norm_ops),
                                [&node](const NormOp& known) { return known.op == node.op; });
  if (op == std::end(norm_ops)) return {};
  Candidate found{&node, op->kind, node.epsilon.value_or(op->eps)};
  found.gain = spread_constant(graph, node.input(op->gain));
  found.bias = spread_constant(graph, node.input(op->bias));
  found.output = node.output();
  return found;
}

/// The vector that the only consumer of `value` adds to it; `value` becomes the sum.
const Tensor* bias_after(const OnnxGraph& graph, ValueId& value, std::uint64_t width) {
  const std::span<const std::uint32_t> takers = graph.takers(value);
  if (takers.size() != 1) return nullptr;
  const OnnxNode& node = graph.nodes()[takers[0]];
  if (node.op == "Cast") {
    ValueId cast = node.output();
    const Tensor* bias = graph.takers(cast).size() == 1 && graph.nodes()[graph.takers(cast)[0]].op != "Cast"
                             ? bias_after(graph, cast, width)
                             : nullptr;
    if (bias != nullptr) value = cast;
    return bias;
  }
  if (node.op != "Add") return nullptr;
  const Tensor* bias = spread_constant(graph, node.input(node.input(0) == value ? 1 : 0));
  if (bias == nullptr || bias->elements() <= 1 || (width != 0 && bias->elements() != width)) return nullptr;
  value = node.output();
  return bias;
}

std::optional<Candidate> found_written_out(const OnnxGraph& graph, const OnnxNode& node) {
  const std::optional<WrittenNorm> written = match_norm(graph, node);
  if (!written) return {};
  Candidate found{&node, written->kind, written->eps, written->gain};
  found.width = written->width;
  found.axis = written->axis;
  found.root = written->root;
  found.output = node.output();
  found.bias = bias_after(graph, found.output, found.gain != nullptr ? found.gain->elements() : found.width);
  return found;
}

/// Adds the linear maps that read `value` directly, and the width if only they determine it.
void add_readers(const OnnxGraph& graph, ValueId value, StatedNorm& norm, MemoryBudget& budget) {
  for (const std::uint32_t taker : graph.takers(value)) {
    const OnnxNode& node = graph.nodes()[taker];
    const bool is_gemm = node.op == "Gemm" && !node.transposes_a;
    if ((!is_gemm && node.op != "MatMul") || node.input(0) != value) continue;
    const Tensor* weight = graph.constant(node.input(1));
    if (weight == nullptr || weight->shape.size() != 2) continue;
    StatedReader reader{std::string(weight->name)};
    reader.in_out = !(is_gemm && node.transposes_b);
    const std::uint64_t in = weight->shape[reader.in_out ? 0 : 1];
    const std::uint64_t out = weight->shape[reader.in_out ? 1 : 0];
    if (norm.width == 0) norm.width = in;
    if (norm.width != in) continue;
    ValueId product = node.output();
    const Tensor* bias = is_gemm ? graph.constant(node.input(2)) : bias_after(graph, product, out);
    if (bias != nullptr && bias->elements() == out) reader.bias = bias->name;
    budget.charge(growth, sizeof reader);
    budget.charge(1, reader.weight.size() + reader.bias.size());
    norm.readers.push_back(std::move(reader));
  }
}

/// The part of a name before its last component; empty if it has only one.
std::string_view graph_stem(std::string_view name) {
  const std::size_t end = name.find_last_of("./");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

std::string_view name_of(const OnnxGraph& graph, const Candidate& found) {
  for (const std::string_view name : {found.gain != nullptr ? found.gain->name : std::string_view(),
                                      found.bias != nullptr ? found.bias->name : std::string_view(),
                                      found.node->name, graph.name(found.output)}) {
    if (!graph_stem(name).empty()) return graph_stem(name);
  }
  return found.gain != nullptr ? found.gain->name : graph.name(found.output);
}

/// The norm, unless its parameters are inconsistent or its width is unknown.
std::optional<StatedNorm> stated(const OnnxGraph& graph, const Candidate& found, MemoryBudget& budget) {
  if (found.output == no_value || !std::isfinite(found.eps) || found.eps < 0.0) return {};
  StatedNorm norm;
  norm.kind = found.kind;
  norm.eps = found.eps;
  norm.width = found.width;
  for (const Tensor* parameter : {found.gain, found.bias}) {
    if (parameter == nullptr) continue;
    const std::optional<std::int64_t> axis = axis_along(*parameter);
    const bool fits = axis && is_floating(parameter->dtype) && is_decodable(parameter->dtype) &&
                      (norm.width == 0 || norm.width == parameter->elements());
    // A gain along another axis than the normalized one does not belong to the norm.
    if (!fits || (found.axis && *found.axis < 0 && *axis != *found.axis)) return {};
    norm.width = parameter->elements();
    norm.axis = *axis;
  }
  if (found.gain == nullptr && found.bias == nullptr && found.axis && *found.axis < 0)
    norm.axis = *found.axis;
  if (norm.axis == -1) add_readers(graph, found.output, norm, budget);
  if (norm.width == 0) return {};
  norm.name = name_of(graph, found);
  if (found.gain != nullptr) norm.gain = found.gain->name;
  if (found.bias != nullptr) norm.bias = found.bias->name;
  budget.charge(growth, sizeof norm);
  budget.charge(1, norm.name.size() + norm.gain.size() + norm.bias.size());
  return norm;
}

}  // namespace

std::vector<StatedNorm> find_onnx_norms(const OnnxGraph& graph, const std::string& file) {
  MemoryBudget budget(graph.stored_bytes() + memory_beyond_graph, file);
  std::vector<Candidate> candidates;
  std::set<const OnnxNode*> with_gain;
  for (const OnnxNode& node : graph.nodes()) {
    std::optional<Candidate> found = found_as_op(graph, node);
    if (!found) found = found_written_out(graph, node);
    if (!found) continue;
    budget.charge(growth, sizeof(Candidate));
    if (found->root != nullptr && found->gain != nullptr) with_gain.insert(found->root);
    candidates.push_back(*found);
  }

  std::vector<StatedNorm> norms;
  std::set<const OnnxNode*> seen;
  for (const Candidate& found : candidates) {
    // A norm expressed as arithmetic matches both before and after the multiplication by its gain.
    if (found.root != nullptr && found.gain == nullptr) {
      if (with_gain.contains(found.root) || !seen.insert(found.root).second) continue;
    }
    if (std::optional<StatedNorm> norm = stated(graph, found, budget)) norms.push_back(std::move(*norm));
  }
  return norms;
}

std::map<std::string, std::size_t> other_onnx_norms(const OnnxGraph& graph) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"BatchNormalization", "BatchNorm"},    {"InstanceNormalization", "InstanceNorm"},
      {"GroupNormalization", "GroupNorm"},    {"GroupNorm", "GroupNorm"},
      {"LpNormalization", "LpNormalization"}, {"MeanVarianceNormalization", "MeanVarianceNormalization"},
      {"LRN", "LocalResponseNorm"},
  };
  std::map<std::string, std::size_t> counts;
  for (const OnnxNode& node : graph.nodes()) {
    for (const auto& [op, kind] : others) {
      if (node.op == op) ++counts[std::string(kind)];
    }
  }
  return counts;
}

std::vector<StatedNorm> stated_norms(const checkpoint::Checkpoint& checkpoint) {
  const OnnxGraph* graph = checkpoint.graph();
  return graph == nullptr ? std::vector<StatedNorm>() : find_onnx_norms(*graph, checkpoint.path().string());
}

}  // namespace normscope::model
