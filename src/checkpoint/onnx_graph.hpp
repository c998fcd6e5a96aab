#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsed_file.hpp"

namespace normscope::checkpoint {

/// A value of a graph, as an index into the graph's sorted list of names.
using ValueId = std::uint32_t;
/// A missing value: an omitted input, or a constant without a name.
inline constexpr ValueId no_value = ~ValueId{0};

/// A NodeProto, with the attributes that identify norms and their readers.
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

/// The nodes of a graph in order, with the producer and consumers of each value. Subgraphs are ignored.
class OnnxGraph {
 public:
  OnnxGraph(Arena& arena, const std::string& where) : arena_(arena), where_(where) {}

  /// Adds a NodeProto; the value of a Constant is appended to `tensors`.
  /// Errors    Format, Unsupported
  void add_node(std::span<const std::byte> message, std::vector<Tensor>& tensors);
  /// To be called after the last node; `tensors`, sorted by name, become the graph's constants.
  /// Errors    Format for a value with two producers
  void link(std::span<const Tensor> tensors);

  [[nodiscard]] std::span<const OnnxNode> nodes() const { return nodes_; }
  [[nodiscard]] std::string_view name(ValueId value) const { return names_[value]; }
  /// The node that produces `value`, or null.
  [[nodiscard]] const OnnxNode* maker(ValueId value) const;
  /// Indices of the nodes that consume `value`, once for each use.
  [[nodiscard]] std::span<const std::uint32_t> takers(ValueId value) const;
  /// The stored tensor of that value, or null.
  [[nodiscard]] const Tensor* constant(ValueId value) const;

 private:
  struct Arity {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
  };
  void add_attribute(std::span<const std::byte> message, OnnxNode& node, std::vector<Tensor>& tensors);
  void add_constant(std::string_view name, Dtype dtype, std::span<const std::uint64_t> shape,
                    std::span<const std::byte> bytes, std::vector<Tensor>& tensors);
  void name_values();

  Arena& arena_;
  const std::string& where_;
  std::vector<OnnxNode> nodes_;
  std::vector<Arity> arities_;               // per node
  std::vector<std::string_view> operands_;   // node by node, inputs before outputs
  std::vector<ValueId> ids_;                 // per operand
  std::vector<std::string_view> names_;      // per value
  std::vector<std::uint32_t> makers_;        // per value
  std::vector<std::uint32_t> takers_;        // consumers grouped by value
  std::vector<std::uint32_t> takers_begin_;  // offsets into `takers_` per value, and the end
  std::vector<const Tensor*> constants_;     // per value
};

}  // namespace normscope::checkpoint
