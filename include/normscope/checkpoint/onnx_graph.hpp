#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>

/// The computation that an ONNX file states.
namespace normscope::checkpoint {

/// A value of a graph, as an index into the graph's sorted list of names.
using ValueId = std::uint32_t;
/// A missing value: an omitted input, or a constant without a name.
inline constexpr ValueId no_value = ~ValueId{0};

/// A NodeProto with the attributes below; others are not kept. Views point into the file.
struct OnnxNode {
  std::string_view name;
  std::string_view op;
  std::span<const ValueId> inputs{};
  std::span<const ValueId> outputs{};
  std::optional<std::int64_t> axis{};
  std::optional<double> epsilon{};
  bool has_axes = false;
  std::optional<std::int64_t> only_axis{};  ///< the entry of "axes", if it has only one
  bool transposes_a = false;
  bool transposes_b = false;

  [[nodiscard]] ValueId input(std::size_t index) const {
    return index < inputs.size() ? inputs[index] : no_value;
  }
  [[nodiscard]] ValueId output() const { return outputs.empty() ? no_value : outputs[0]; }
};

/// The nodes of a graph in order, with the producer and consumers of each value. Subgraphs are ignored. Names
/// and constants are valid as long as the `Checkpoint` that holds the graph.
class OnnxGraph {
 public:
  // The nodes' operands are views into the graph's own list, which a move keeps in place.
  OnnxGraph(OnnxGraph&&) = default;
  OnnxGraph& operator=(OnnxGraph&&) = default;

  [[nodiscard]] std::span<const OnnxNode> nodes() const { return nodes_; }
  [[nodiscard]] std::string_view name(ValueId value) const { return names_[value]; }
  /// The node that produces `value`, or null.
  [[nodiscard]] const OnnxNode* maker(ValueId value) const;
  /// Indices of the nodes that consume `value`, once for each use.
  [[nodiscard]] std::span<const std::uint32_t> takers(ValueId value) const;
  /// The stored tensor of that value, or null.
  [[nodiscard]] const Tensor* constant(ValueId value) const;
  /// Size of the graph in its file.
  [[nodiscard]] std::size_t stored_bytes() const { return stored_bytes_; }

 private:
  friend class OnnxGraphReader;
  OnnxGraph() = default;

  static constexpr std::uint32_t no_node = ~std::uint32_t{0};

  std::vector<OnnxNode> nodes_;
  std::vector<ValueId> ids_;                 // per operand
  std::vector<std::string_view> names_;      // per value
  std::vector<std::uint32_t> makers_;        // per value
  std::vector<std::uint32_t> takers_;        // consumers grouped by value
  std::vector<std::uint32_t> takers_begin_;  // offsets into `takers_` per value, and the end
  std::vector<const Tensor*> constants_;     // per value
  std::size_t stored_bytes_ = 0;
};

}  // namespace normscope::checkpoint
