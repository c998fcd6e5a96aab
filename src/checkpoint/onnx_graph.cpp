#include <normscope/checkpoint/onnx_graph.hpp>

namespace normscope::checkpoint {

const OnnxNode* OnnxGraph::maker(ValueId value) const {
  return value == no_value || makers_[value] == no_node ? nullptr : &nodes_[makers_[value]];
}

std::span<const std::uint32_t> OnnxGraph::takers(ValueId value) const {
  if (value == no_value) return {};
  return std::span(takers_).subspan(takers_begin_[value], takers_begin_[value + 1] - takers_begin_[value]);
}

const Tensor* OnnxGraph::constant(ValueId value) const {
  return value == no_value ? nullptr : constants_[value];
}

}  // namespace normscope::checkpoint
