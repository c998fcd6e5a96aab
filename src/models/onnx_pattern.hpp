#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/onnx_graph.hpp>

#include "onnx_shapes.hpp"

namespace normscope::models {

/// A constant of a graph, up to casts between floating types, reshapes and an added 1.
struct GraphParameter {
  const files::Tensor* tensor = nullptr;  ///< as stored
  files::ValueId stored = files::no_value;
  double offset = 0.0;            ///< 1 where the graph adds 1 to what is stored
  OnnxShapes::Extents extents{};  ///< after reshapes; their product is the tensor's size
};

/// A norm expressed as arithmetic.
struct WrittenNorm {
  NormKind kind = NormKind::layer;
  const files::OnnxNode* root = nullptr;  ///< computes the square root; identifies the norm
  files::ValueId input = files::no_value;
  std::optional<GraphParameter> gain{};  ///< of more than one element
  double eps = 0.0;
  std::int64_t axis = -1;   ///< counted from the end
  std::uint64_t count = 0;  ///< what sums are divided by, which has to be the width; 0 if no sum is
};

/// The norm whose scaled output is `node`, if that is a product of
///   x − mean x, or x for RMSNorm and projections onto a sphere,
///   1 / sqrt(variance + eps), with the variance mean (x − mean x)² or mean x² − (mean x)², or
///   mean x² for RMSNorm, or sum x² for a projection, which may be clamped at 0; without eps also 1 /
///   ReduceL2(x), and at most one constant vector, the gain, to which 1 may be added,
/// in any order and grouping, over one axis, with casts between floating types anywhere and with reshapes
/// that put statistics beside the rows of x they are of. Operators with an attribute that is not known match
/// nothing.
///
/// Cost      bounded, for every graph
[[nodiscard]] std::optional<WrittenNorm> match_norm(const files::OnnxGraph& graph, const OnnxShapes& shapes,
                                                    const files::OnnxNode& node);

/// The parameter that `value` is; empty if it is none, or none of known extents.
[[nodiscard]] std::optional<GraphParameter> parameter_of(const files::OnnxGraph& graph,
                                                         const OnnxShapes& shapes, files::ValueId value);

/// Whether the operator is Identity or a cast to a floating type, which changes its operand by rounding at
/// most.
[[nodiscard]] bool changes_nothing(const files::OnnxNode& node);

/// Whether `node` is that operator of ONNX without attributes.
[[nodiscard]] bool is_plain(const files::OnnxNode& node, std::string_view op);

}  // namespace normscope::models
