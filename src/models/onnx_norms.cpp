#include "found_norms.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "onnx_pattern.hpp"

namespace normscope::models {
namespace {

using files::no_value;
using files::OnnxGraph;
using files::OnnxNode;
using files::Tensor;
using files::ValueId;

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
  std::size_t inputs;  ///< at most
  std::size_t gain;
  std::size_t bias;
  double eps;         ///< the operator's default
  bool is_microsoft;  ///< of com.microsoft only, with the last axis normalized
};
constexpr std::size_t no_input = ~std::size_t{0};
constexpr NormOp norm_ops[] = {
    {"LayerNormalization", NormKind::layer, 3, 1, 2, 1e-5, false},
    {"RMSNormalization", NormKind::rms, 2, 1, no_input, 1e-5, false},
    {"SimplifiedLayerNormalization", NormKind::rms, 2, 1, no_input, 1e-5, false},
    {"SkipLayerNormalization", NormKind::layer, 5, 2, 3, 1e-12, true},
    {"SkipSimplifiedLayerNormalization", NormKind::rms, 4, 2, no_input, 1e-12, true},
    {"EmbedLayerNormalization", NormKind::layer, 9, 5, 6, 1e-12, true},
};

/// Properties of a norm collected for a StatedNorm.
struct Candidate {
  const OnnxNode* node = nullptr;
  NormKind kind = NormKind::layer;
  double eps = 0.0;
  std::optional<GraphParameter> gain{};
  std::optional<GraphParameter> bias{};
  ValueId input = no_value;
  /// The normalized axes, counted from the end: the first of them, and the last.
  std::int64_t first_axis = -1, last_axis = -1;
  std::uint64_t count = 0;         ///< what sums are divided by, 0 if none is
  const OnnxNode* root = nullptr;  ///< root of a norm expressed as arithmetic
  std::vector<std::string> reasons{};
  ValueId output = no_value;

  /// Those of gain and bias that are there.
  [[nodiscard]] std::vector<const GraphParameter*> parameters() const {
    std::vector<const GraphParameter*> result;
    for (const auto* parameter : {&gain, &bias}) {
      if (*parameter) result.push_back(&**parameter);
    }
    return result;
  }
};

const NormOp* norm_op(const OnnxNode& node) {
  const auto* op = std::find_if(std::begin(norm_ops), std::end(norm_ops),
                                [&node](const NormOp& known) { return known.op == node.op; });
  if (op == std::end(norm_ops)) return nullptr;
  return node.domain == "com.microsoft" || (node.is_standard && !op->is_microsoft) ? op : nullptr;
}

/// Whether the extents of a parameter are those of a vector along the last axis.
bool is_last_axis(const OnnxShapes::Extents& extents, std::uint64_t width) {
  return !extents.empty() && extents.back() == static_cast<std::int64_t>(width) &&
         std::all_of(extents.begin(), extents.end() - 1, [](std::int64_t extent) { return extent == 1; });
}

/// The part of a name before its last component; empty if it has only one.
std::string_view graph_stem(std::string_view name) {
  const std::size_t end = name.find_last_of("./");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

std::string_view name_of(const OnnxGraph& graph, const Candidate& found) {
  for (const std::string_view name : {found.gain ? found.gain->tensor->name : std::string_view(),
                                      found.bias ? found.bias->tensor->name : std::string_view(),
                                      found.node->name, graph.name(found.output)}) {
    if (!graph_stem(name).empty()) return graph_stem(name);
  }
  return found.gain ? found.gain->tensor->name : graph.name(found.output);
}

/// Reads the norms of a graph.
class NormReader {
 public:
  NormReader(const OnnxGraph& graph, MemoryBudget& budget)
      : graph_(graph), budget_(budget), shapes_(graph, charge_) {}

  StatedNorms read() {
    StatedNorms result;
    std::vector<Candidate> candidates;
    std::vector<StatedNorm> norms;
    std::set<const OnnxNode*> with_gain;
    std::map<const OnnxNode*, std::string> rejected;  // by the root
    for (const OnnxNode& node : graph_.nodes()) {
      const NormOp* const op = norm_op(node);
      std::string why;
      std::optional<Candidate> found = op != nullptr ? found_as_op(node, *op, why) : found_written_out(node);
      std::optional<StatedNorm> norm = found ? stated(*found, why) : std::nullopt;
      if (norm) {
        if (found->root != nullptr && found->gain) with_gain.insert(found->root);
        budget_.charge(growth, sizeof(Candidate) + sizeof(StatedNorm));
        norms.push_back(std::move(*norm));
        candidates.push_back(std::move(*found));
      } else if (op != nullptr) {
        std::string text = fmt::format("{}: {}", title_of(graph_, node), why);
        budget_.charge(growth, sizeof text);
        budget_.charge(1, text.size());
        result.not_understood.push_back(std::move(text));
      } else if (found && found->root != nullptr) {
        budget_.charge(growth, sizeof(rejected));
        rejected.try_emplace(found->root, why);
      }
    }
    std::set<const OnnxNode*> seen;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const Candidate& found = candidates[i];
      // A norm expressed as arithmetic matches both before and after the multiplication by its gain.
      if (found.root != nullptr && !found.gain) {
        if (with_gain.contains(found.root) || !seen.insert(found.root).second) continue;
      }
      result.norms.push_back(std::move(norms[i]));
    }
    std::set<const OnnxNode*> roots;
    for (const Candidate& found : candidates) roots.insert(found.root);
    for (const OnnxNode& node : graph_.nodes()) {
      if (roots.contains(&node) || !is_root(graph_, shapes_, node)) continue;
      const auto known = rejected.find(&node);
      const std::string why = known == rejected.end() ? why_no_norm(graph_, shapes_, node) : known->second;
      if (why.empty()) continue;
      NearMiss miss{title_of(graph_, node), why};
      budget_.charge(growth, sizeof miss);
      budget_.charge(1, miss.node.size() + miss.why.size());
      result.near_misses.push_back(std::move(miss));
    }
    return result;
  }

 private:
  /// The norm that an operator is; otherwise `why` says what of it is not understood.
  [[nodiscard]] std::optional<Candidate> found_as_op(const OnnxNode& node, const NormOp& op,
                                                     std::string& why) const {
    using Type = files::OnnxAttribute::Type;
    constexpr OnnxNode::Known with_axis[] = {
        {"epsilon", Type::real}, {"axis", Type::integer}, {"stash_type", Type::integer}};
    constexpr OnnxNode::Known of_microsoft[] = {{"epsilon", Type::real}, {"mask_index_type", Type::integer}};
    const bool is_known = op.is_microsoft ? node.has_only(of_microsoft) : node.has_only(with_axis);
    if (!is_known || node.inputs.size() > op.inputs) {
      why = "it has an attribute or an input that is not known";
      return {};
    }
    Candidate found{&node, op.kind, node.real("epsilon", op.eps)};
    found.output = node.output();
    found.reasons.push_back("operator " + title_of(graph_, node));
    found.reasons.push_back(fmt::format(
        "eps is {:g}, {}", found.eps,
        node.attribute("epsilon") != nullptr ? "its attribute epsilon" : "the default of the operator"));
    if (op.op != "EmbedLayerNormalization") found.input = node.input(0);
    for (const auto& [at, parameter] : {std::pair(op.gain, &found.gain), std::pair(op.bias, &found.bias)}) {
      const ValueId value = node.input(at);
      if (value == no_value) continue;
      *parameter = parameter_of(graph_, shapes_, value);
      if (*parameter && (at == op.gain || (*parameter)->offset == 0.0)) {
        found.reasons.push_back(fmt::format("the {} is {}, input {}", at == op.gain ? "gain" : "bias",
                                            graph_.name((*parameter)->stored), at));
        continue;
      }
      why = fmt::format("{} is not a stored {}", graph_.name(value), at == op.gain ? "gain" : "bias");
      return {};
    }
    found.first_axis = node.integer("axis", -1);
    if (found.first_axis >= 0) {
      const std::optional<OnnxShapes::Extents> extents = shapes_.of(found.input);
      found.first_axis = extents ? from_end(found.first_axis, extents->size()).value_or(0) : 0;
    }
    constexpr std::int64_t most_axes = 8;
    if (found.first_axis >= 0 || found.first_axis < -most_axes) {
      why = "its axis is counted from the first, and the graph does not state how many there are";
      return {};
    }
    return found;
  }

  [[nodiscard]] std::optional<Candidate> found_written_out(const OnnxNode& node) const {
    std::optional<WrittenNorm> written = match_norm(graph_, shapes_, node);
    if (!written) return {};
    Candidate found{&node, written->kind, written->eps, std::move(written->gain)};
    found.input = written->input;
    found.first_axis = found.last_axis = written->axis;
    found.count = written->count;
    found.root = written->root;
    found.reasons = std::move(written->reasons);
    found.output = node.output();
    ValueId sum = found.output;
    found.bias = added_to(sum);
    // What is added along another axis is no bias.
    std::string ignored;
    if (found.bias && width_of(found, ignored)) {
      found.output = sum;
      found.reasons.push_back(
          fmt::format("the bias is {}, added to the product", graph_.name(found.bias->stored)));
    } else {
      found.bias.reset();
    }
    return found;
  }

  /// The constant that the only consumer of `value` adds to it; `value` becomes the sum.
  [[nodiscard]] std::optional<GraphParameter> added_to(ValueId& value) const {
    ValueId at = value;
    for (int i = 0; i < 2; ++i) {
      const std::span<const std::uint32_t> takers = graph_.takers(at);
      if (takers.size() != 1) return {};
      const OnnxNode& node = graph_.nodes()[takers[0]];
      if (is_plain(node, "Add")) {
        std::optional<GraphParameter> other =
            parameter_of(graph_, shapes_, node.input(node.input(0) == at ? 1 : 0));
        if (!other || other->offset != 0.0) return {};
        value = node.output();
        return other;
      }
      if (!changes_nothing(node)) return {};
      at = node.output();
    }
    return {};
  }

  /// How many values a norm normalizes together, 0 if only a reader can tell; otherwise `why` says what of
  /// its parameters does not fit.
  [[nodiscard]] std::optional<std::uint64_t> width_of(const Candidate& found, std::string& why) const {
    const std::optional<OnnxShapes::Extents> rows = shapes_.of(found.input);
    const auto extent_at = [](const OnnxShapes::Extents& extents, std::int64_t axis) -> std::int64_t {
      const auto rank = static_cast<std::int64_t>(extents.size());
      return -axis > rank ? 1 : extents[static_cast<std::size_t>(rank + axis)];
    };
    std::uint64_t width = 1;
    bool is_known = true;
    for (std::int64_t axis = found.first_axis; axis <= found.last_axis; ++axis) {
      std::int64_t extent = rows ? extent_at(*rows, axis) : unknown_extent;
      for (const GraphParameter* const parameter : found.parameters()) {
        const std::int64_t own = extent_at(parameter->extents, axis);
        if (extent == unknown_extent && own > 1) extent = own;
      }
      for (const GraphParameter* const parameter : found.parameters()) {
        if (extent_at(parameter->extents, axis) == extent) continue;
        why = fmt::format("{} does not have the shape of what is normalized", parameter->tensor->name);
        return {};
      }
      if (extent <= 0) {
        is_known = false;
      } else if (__builtin_mul_overflow(width, static_cast<std::uint64_t>(extent), &width)) {
        return {};
      }
    }
    for (const GraphParameter* const parameter : found.parameters()) {
      if (!is_known || parameter->tensor->elements() != width) {
        why = fmt::format("{} does not have the shape of what is normalized", parameter->tensor->name);
        return {};
      }
    }
    if (!is_known)
      return found.first_axis == -1 && found.count == 0 ? std::optional(std::uint64_t{0}) : std::nullopt;
    if (found.count == 0 || found.count == width) return width;
    why = fmt::format("its sums are divided by {}, of {} features", found.count, width);
    return {};
  }

  /// The norm, unless its parameters are inconsistent or its width is unknown.
  [[nodiscard]] std::optional<StatedNorm> stated(const Candidate& found, std::string& why) {
    why = "its output or its eps is none that a norm has";
    if (found.output == no_value || !std::isfinite(found.eps) || found.eps < 0.0) return {};
    why = "its width is not known";
    const std::optional<std::uint64_t> width = width_of(found, why);
    if (!width) return {};
    StatedNorm norm;
    norm.kind = found.kind;
    norm.eps = found.eps;
    norm.width = *width;
    // Several last axes are taken as one.
    norm.axis = found.last_axis;
    if (found.first_axis == -1) add_readers(found.output, norm, 0);
    if (norm.width == 0) return {};
    norm.name = name_of(graph_, found);
    norm.reasons = found.reasons;
    for (const std::string& reason : norm.reasons) {
      budget_.charge(growth, sizeof reason);
      budget_.charge(2, reason.size());
    }
    if (found.gain) {
      norm.gain = found.gain->tensor->name;
      norm.gain_offset = found.gain->offset;
    }
    if (found.bias) norm.bias = found.bias->tensor->name;
    for (const GraphParameter* const parameter : found.parameters())
      norm.is_default = norm.is_default || graph_.is_input(parameter->stored);
    budget_.charge(growth, sizeof norm);
    budget_.charge(1, norm.name.size() + norm.gain.size() + norm.bias.size());
    return norm;
  }

  /// Adds the linear maps that read `value` directly or through casts and reshapes that keep the last axis,
  /// and the width if only they determine it.
  void add_readers(ValueId value, StatedNorm& norm, int depth) {
    constexpr int deepest = 4;
    for (const std::uint32_t taker : graph_.takers(value)) {
      const OnnxNode& node = graph_.nodes()[taker];
      if (depth < deepest && node.input(0) == value && keeps_last_axis(node, norm.width)) {
        add_readers(node.output(), norm, depth + 1);
      } else if (node.is_standard && (node.op == "Gemm" || node.op == "MatMul") && node.input(0) == value) {
        add_reader(node, norm);
      }
    }
  }

  [[nodiscard]] bool keeps_last_axis(const OnnxNode& node, std::uint64_t width) const {
    if (changes_nothing(node)) return true;
    const bool is_reshape = node.is_standard && node.op == "Reshape";
    const std::optional<OnnxShapes::Extents> out = is_reshape ? shapes_.of(node.output()) : std::nullopt;
    return out && !out->empty() && width != 0 && out->back() == static_cast<std::int64_t>(width);
  }

  /// A stored matrix, and whether it is transposed on its way to the operator.
  struct Matrix {
    const Tensor* stored = nullptr;
    bool is_transposed = false;
  };
  [[nodiscard]] Matrix matrix_of(ValueId value) const {
    using Type = files::OnnxAttribute::Type;
    constexpr OnnxNode::Known known[] = {{"perm", Type::integers}};
    Matrix result;
    for (int i = 0; i < 4; ++i) {
      result.stored = graph_.constant(value);
      const OnnxNode* const node = graph_.maker(value);
      if (result.stored != nullptr || node == nullptr) break;
      if (node->is_standard && node->op == "Transpose" && node->has_only(known)) {
        const files::OnnxAttribute* const perm = node->attribute("perm");
        const bool keeps = perm != nullptr &&
                           std::equal(perm->integers.begin(), perm->integers.end(), identity, identity + 2);
        const bool swaps =
            perm == nullptr || std::equal(perm->integers.begin(), perm->integers.end(), swap, swap + 2);
        if (!keeps && !swaps) return {};
        result.is_transposed = result.is_transposed != swaps;
      } else if (!changes_nothing(*node)) {
        return {};
      }
      value = node->input(0);
    }
    const bool is_matrix = result.stored != nullptr && result.stored->shape.size() == 2 &&
                           is_floating(result.stored->dtype) && is_decodable(result.stored->dtype);
    return is_matrix ? result : Matrix{};
  }

  void add_reader(const OnnxNode& node, StatedNorm& norm) {
    const Matrix matrix = matrix_of(node.input(1));
    if (matrix.stored == nullptr) return;
    StatedReader reader{std::string(matrix.stored->name)};
    std::string why;
    reader.in_out = matrix.is_transposed == (node.op == "Gemm" && node.integer("transB", 0) != 0);
    const std::uint64_t in = matrix.stored->shape[reader.in_out ? 0 : 1];
    const std::uint64_t out = matrix.stored->shape[reader.in_out ? 1 : 0];
    if (node.op == "Gemm") {
      why = why_not_affine(node, out, reader);
    } else if (node.inputs.size() != 2 || !node.attributes.empty()) {
      why = "MatMul with an attribute or an input that is not known";
    } else {
      why = read_added(node, out, reader);
    }
    if (why.empty() && norm.width == 0) norm.width = in;
    if (in == 0 || out == 0 || norm.width != in) return;
    if (!why.empty()) {
      std::string text = fmt::format("{} ({})", reader.weight, why);
      budget_.charge(growth, sizeof text);
      budget_.charge(1, text.size());
      norm.other_readers.push_back(std::move(text));
      return;
    }
    budget_.charge(growth, sizeof reader);
    budget_.charge(1, reader.weight.size() + reader.bias.size());
    norm.readers.push_back(std::move(reader));
  }

  /// Reads the bias of a Gemm, or says why it is not y = W x + b.
  [[nodiscard]] std::string why_not_affine(const OnnxNode& node, std::uint64_t out,
                                           StatedReader& reader) const {
    using Type = files::OnnxAttribute::Type;
    constexpr OnnxNode::Known known[] = {
        {"alpha", Type::real}, {"beta", Type::real}, {"transA", Type::integer}, {"transB", Type::integer}};
    if (!node.has_only(known) || node.inputs.size() > 3)
      return "Gemm with an attribute or an input that is not known";
    if (node.integer("transA", 0) != 0) return "Gemm with transA";
    if (const double alpha = node.real("alpha", 1.0); alpha != 1.0)
      return fmt::format("Gemm with alpha {:g}", alpha);
    if (node.input(2) == no_value) return {};
    if (const double beta = node.real("beta", 1.0); beta != 1.0)
      return fmt::format("Gemm with beta {:g}", beta);
    const std::optional<GraphParameter> bias = parameter_of(graph_, shapes_, node.input(2));
    if (!bias || bias->offset != 0.0 || !is_last_axis(bias->extents, out))
      return fmt::format("Gemm whose {} is not one stored number for each output",
                         graph_.name(node.input(2)));
    reader.bias = bias->tensor->name;
    return {};
  }

  /// Reads the bias that is added to a product, or says why what is added is no bias.
  [[nodiscard]] std::string read_added(const OnnxNode& product, std::uint64_t out,
                                       StatedReader& reader) const {
    ValueId sum = product.output();
    const std::optional<GraphParameter> bias = added_to(sum);
    if (!bias) return {};
    if (!is_last_axis(bias->extents, out)) {
      return fmt::format("the {} that is added is not one number for each output", bias->tensor->name);
    }
    reader.bias = bias->tensor->name;
    return {};
  }

  static constexpr std::int64_t identity[] = {0, 1}, swap[] = {1, 0};

  const OnnxGraph& graph_;
  MemoryBudget& budget_;
  const std::function<void(std::size_t)> charge_ = [this](std::size_t bytes) { budget_.charge(1, bytes); };
  OnnxShapes shapes_;
};

}  // namespace

StatedNorms find_onnx_norms(const OnnxGraph& graph, const std::string& file) {
  MemoryBudget budget(graph.stored_bytes() + memory_beyond_graph, file);
  return NormReader(graph, budget).read();
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

StatedNorms stated_norms(const files::Checkpoint& checkpoint) {
  const OnnxGraph* graph = checkpoint.graph();
  return graph == nullptr ? StatedNorms() : find_onnx_norms(*graph, checkpoint.path().string());
}

}  // namespace normscope::models
