#pragma once

#include <vector>

#include "onnx_graph.hpp"

namespace normscope::checkpoint {

/// The norms in a graph, in its order: operators (LayerNormalization, RMSNormalization and those of
/// com.microsoft), and norms expressed as arithmetic. Norms of unknown width are left out.
/// Errors    Unsupported if they take more memory than the arena allows
[[nodiscard]] std::vector<StatedNorm> find_onnx_norms(const OnnxGraph& graph, Arena& arena);

}  // namespace normscope::checkpoint
