#pragma once

#include <cstdint>
#include <optional>

#include "onnx_graph.hpp"

namespace normscope::checkpoint {

/// A norm written out as arithmetic.
struct WrittenNorm {
  NormKind kind = NormKind::layer;
  const OnnxNode* root = nullptr;  ///< takes the square root; what tells one norm from another
  const Tensor* gain = nullptr;    ///< of more than one element, or null
  double eps = 0.0;
  std::optional<std::int64_t> axis{};  ///< as the graph has it: counted from either end
  std::uint64_t width = 0;             ///< where a sum is divided by it, else 0
};

/// The norm whose scaled output `node` makes, where it is a product of
///   x − mean x, or x for RMSNorm,
///   1 / sqrt(variance + eps), with the variance mean (x − mean x)² or mean x² − (mean x)², or
///   mean x² for RMSNorm, and
///   at most one constant vector, the gain,
/// in any order and grouping, over one axis; with casts anywhere, and changes of shape where statistics
/// and gain are spread over x.
/// Cost      bounded, whatever the graph
[[nodiscard]] std::optional<WrittenNorm> match_norm(const OnnxGraph& graph, const OnnxNode& node);

/// The constant tensor that `value` is, apart from casts and changes of shape, or null.
[[nodiscard]] const Tensor* spread_constant(const OnnxGraph& graph, ValueId value);

}  // namespace normscope::checkpoint
