#pragma once

#include <cstdint>
#include <optional>

#include "onnx_graph.hpp"

namespace normscope::checkpoint {

/// A norm expressed as arithmetic.
struct WrittenNorm {
  NormKind kind = NormKind::layer;
  const OnnxNode* root = nullptr;  ///< computes the square root; identifies the norm
  const Tensor* gain = nullptr;    ///< of more than one element, or null
  double eps = 0.0;
  std::optional<std::int64_t> axis{};  ///< as in the graph: counted from either end
  std::uint64_t width = 0;             ///< if a sum is divided by it, else 0
};

/// The norm whose scaled output is `node`, if that is a product of
///   x − mean x, or x for RMSNorm,
///   1 / sqrt(variance + eps), with the variance mean (x − mean x)² or mean x² − (mean x)², or
///   mean x² for RMSNorm, and
///   at most one constant vector, the gain,
/// in any order and grouping, over one axis, with casts anywhere and with reshapes where statistics and gain
/// are broadcast over x.
/// Cost      bounded, for every graph
[[nodiscard]] std::optional<WrittenNorm> match_norm(const OnnxGraph& graph, const OnnxNode& node);

/// The constant tensor that `value` is, up to casts and reshapes, or null.
[[nodiscard]] const Tensor* spread_constant(const OnnxGraph& graph, ValueId value);

}  // namespace normscope::checkpoint
