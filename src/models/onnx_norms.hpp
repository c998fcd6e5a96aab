#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <normscope/files/onnx_graph.hpp>
#include <normscope/models/stated_norm.hpp>

namespace normscope::models {

/// The norms in a graph, as `stated_norms`; errors name `file`.
///
/// Errors    as `stated_norms`
[[nodiscard]] StatedNorms find_onnx_norms(const files::OnnxGraph& graph, const std::string& file);

/// How many operators of the graph normalize in a way that is not analysed, by kind: "BatchNorm" and others.
[[nodiscard]] std::map<std::string, std::size_t> other_onnx_norms(const files::OnnxGraph& graph);

}  // namespace normscope::models
