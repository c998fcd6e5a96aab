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

/// A value of a graph, by its place in the graph's sorted list of names.
using ValueId = std::uint32_t;
/// The value that is not there: an input left out, a constant without a name.
inline constexpr ValueId no_value = ~ValueId{0};

/// A NodeProto, with the attributes that norms and their readers are told by.
struct OnnxNode {
  std::string_view name;
  std::string_view op;
  std::span<const ValueId> inputs{};
  std::span<const ValueId> outputs{};
  std::optional<std::int64_t> axis{};
  std::optional<double> epsilon{};
  bool has_axes = false;
  std::optional<std::int64_t> only_axis{};  ///< of "axes", where it has one entry
  bool transposes_a = false;
  bool transposes_b = false;

  [[nodiscard]] ValueId input(std::size_t index) const {
    return index < inputs.size() ? inputs[index] : no_value;
  }
  [[nodiscard]] ValueId output() const { return outputs.empty() ? no_value : outputs[0]; }
};

/// The nodes of a graph in their order, and who makes and takes its values. Subgraphs are not looked into.
class OnnxGraph {
 public:
  OnnxGraph(Arena& arena, const std::string& where) : arena_(arena), where_(where) {}

  /// Adds a NodeProto; the value of a Constant is appended to `tensors`.
  /// Errors    Format, Unsupported
  void add_node(std::span<const std::byte> message, std::vector<Tensor>& tensors);
  /// To be called after the last node; `tensors` sorted by name are the graph's constants from then on.
  /// Errors    Format for a value that two nodes make
  void link(std::span<const Tensor> tensors);

  [[nodiscard]] std::span<const OnnxNode> nodes() const { return nodes_; }
  [[nodiscard]] std::string_view name(ValueId value) const { return names_[value]; }
  /// The node that makes `value`, or null.
  [[nodiscard]] const OnnxNode* maker(ValueId value) const;
  /// Indices of the nodes that take `value`, once for each time they do.
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
  std::vector<Arity> arities_;               // of the nodes
  std::vector<std::string_view> operands_;   // node by node, inputs before outputs
  std::vector<ValueId> ids_;                 // of the operands
  std::vector<std::string_view> names_;      // of the values
  std::vector<std::uint32_t> makers_;        // by value
  std::vector<std::uint32_t> takers_;        // by value, one value's after another's
  std::vector<std::uint32_t> takers_begin_;  // by value, and one more
  std::vector<const Tensor*> constants_;     // by value
};

}  // namespace normscope::checkpoint
