#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <normscope/files/checkpoint.hpp>

/// The computation that an ONNX file states.
namespace normscope::files {

/// A value of a graph, as an index into the graph's sorted list of names.
using ValueId = std::uint32_t;
/// A missing value: an omitted input, or a constant without a name.
inline constexpr ValueId no_value = ~ValueId{0};

/// An attribute of a node. Subgraphs, lists of other types and attributes that are stored with a value of
/// another type than they state are `other`.
struct OnnxAttribute {
  enum class Type : std::uint8_t { real, integer, integers, text, tensor, other };

  std::string_view name;
  Type type;
  double real;                             ///< of a real number
  std::int64_t integer;                    ///< of an integer
  std::span<const std::int64_t> integers;  ///< of a list of integers
};

/// A NodeProto. Views point into the file.
struct OnnxNode {
  /// An attribute that an operator may have.
  struct Known {
    std::string_view name;
    OnnxAttribute::Type type;
  };

  std::string_view name;
  std::string_view op;
  std::string_view domain;
  /// Whether the domain is that of ONNX itself and the file does not define a function of that name.
  bool is_standard = true;
  std::span<const ValueId> inputs{};
  std::span<const ValueId> outputs{};
  std::span<const OnnxAttribute> attributes{};

  [[nodiscard]] ValueId input(std::size_t index) const {
    return index < inputs.size() ? inputs[index] : no_value;
  }
  [[nodiscard]] ValueId output() const { return outputs.empty() ? no_value : outputs[0]; }
  /// The attribute of that name, or null.
  [[nodiscard]] const OnnxAttribute* attribute(std::string_view attribute_name) const;
  /// Whether every attribute is one of `known`, by name and type, and none comes twice.
  [[nodiscard]] bool has_only(std::span<const Known> known) const;
  /// The value of an attribute of `has_only`'s types, or `otherwise`.
  [[nodiscard]] std::int64_t integer(std::string_view attribute_name, std::int64_t otherwise) const;
  [[nodiscard]] double real(std::string_view attribute_name, double otherwise) const;
};

/// The extents that a file states for a value: -1 where one is not a number.
struct OnnxExtents {
  ValueId value = no_value;
  std::span<const std::int64_t> extents{};
};

/// The nodes of a graph in order, with the producer and consumers of each value. Subgraphs are ignored. Names
/// and constants are valid as long as the `Checkpoint` that holds the graph.
class OnnxGraph {
 public:
  // The nodes' operands are views into the graph's own list, which a move keeps in place.
  OnnxGraph(OnnxGraph&&) = default;
  OnnxGraph& operator=(OnnxGraph&&) = default;

  [[nodiscard]] std::span<const OnnxNode> nodes() const { return nodes_; }
  [[nodiscard]] std::size_t values() const { return names_.size(); }
  [[nodiscard]] std::string_view name(ValueId value) const { return names_[value]; }
  /// The node that produces `value`, or null.
  [[nodiscard]] const OnnxNode* maker(ValueId value) const;
  /// Indices of the nodes that consume `value`, once for each use.
  [[nodiscard]] std::span<const std::uint32_t> takers(ValueId value) const;
  /// The stored tensor of that value, or null.
  [[nodiscard]] const Tensor* constant(ValueId value) const;
  /// What the file states of the extents of inputs, outputs and other values.
  [[nodiscard]] std::span<const OnnxExtents> stated_extents() const { return stated_extents_; }
  /// Whether a caller may give the value: then a stored tensor of that name is a default.
  [[nodiscard]] bool is_input(ValueId value) const { return value != no_value && is_input_[value]; }
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
  std::vector<bool> is_input_;               // per value
  std::vector<OnnxExtents> stated_extents_;
  std::size_t stored_bytes_ = 0;
};

}  // namespace normscope::files
