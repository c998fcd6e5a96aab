#pragma once

#include <cstdint>
#include <optional>

#include <normscope/checkpoint/onnx_graph.hpp>
#include <normscope/core/norm_spec.hpp>

namespace normscope::model {

/// A norm expressed as arithmetic.
struct WrittenNorm {
  NormKind kind = NormKind::layer;
  const checkpoint::OnnxNode* root = nullptr;  ///< computes the square root; identifies the norm
  const checkpoint::Tensor* gain = nullptr;    ///< of more than one element, or null
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
///
/// Cost      bounded, for every graph
[[nodiscard]] std::optional<WrittenNorm> match_norm(const checkpoint::OnnxGraph& graph,
                                                    const checkpoint::OnnxNode& node);

/// The constant tensor that `value` is, up to casts and reshapes, or null.
[[nodiscard]] const checkpoint::Tensor* spread_constant(const checkpoint::OnnxGraph& graph,
                                                        checkpoint::ValueId value);

}  // namespace normscope::model
