#pragma once

#include <vector>

#include "onnx_graph.hpp"

namespace normscope::checkpoint {

/// The norms that a graph states, by operators of their own (LayerNormalization, RMSNormalization and
/// those of com.microsoft) or written out as arithmetic, in the graph's order. A norm whose width nothing
/// tells is left out.
/// Errors    Unsupported where they take more memory than the arena allows
[[nodiscard]] std::vector<StatedNorm> find_onnx_norms(const OnnxGraph& graph, Arena& arena);

}  // namespace normscope::checkpoint
