#include <normscope/checkpoint/onnx_graph.hpp>

#include <algorithm>

namespace normscope::checkpoint {

const OnnxAttribute* OnnxNode::attribute(std::string_view attribute_name) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const OnnxAttribute& attribute) {
    return attribute.name == attribute_name;
  });
  return found == attributes.end() ? nullptr : &*found;
}

bool OnnxNode::has_only(std::span<const Known> known) const {
  return std::all_of(attributes.begin(), attributes.end(), [&](const OnnxAttribute& attribute) {
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const Known& one) {
      return one.name == attribute.name && one.type == attribute.type;
    });
    return is_known && this->attribute(attribute.name) == &attribute;
  });
}

std::int64_t OnnxNode::integer(std::string_view attribute_name, std::int64_t otherwise) const {
  const OnnxAttribute* const found = attribute(attribute_name);
  return found == nullptr ? otherwise : found->integer;
}

double OnnxNode::real(std::string_view attribute_name, double otherwise) const {
  const OnnxAttribute* const found = attribute(attribute_name);
  return found == nullptr ? otherwise : found->real;
}

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
