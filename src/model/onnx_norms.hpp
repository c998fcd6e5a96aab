#pragma once

#include <string>
#include <vector>

#include <normscope/checkpoint/onnx_graph.hpp>
#include <normscope/model/stated_norm.hpp>

namespace normscope::model {

/// The norms in a graph, as `stated_norms`; errors name `file`.
/// Errors    as `stated_norms`
[[nodiscard]] std::vector<StatedNorm> find_onnx_norms(const checkpoint::OnnxGraph& graph,
                                                      const std::string& file);

}  // namespace normscope::model
