#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <normscope/checkpoint/onnx_graph.hpp>

#include "parsed_file.hpp"

namespace normscope::checkpoint {

/// Functions that a file defines, by domain and name: a node of that name calls the function.
using OnnxFunctions = std::set<std::pair<std::string, std::string>>;

/// Reads a graph node by node.
class OnnxGraphReader {
 public:
  OnnxGraphReader(Arena& arena, const std::string& where, const OnnxFunctions& functions)
      : arena_(arena), where_(where), functions_(functions) {}

  /// Adds a NodeProto; the value of a Constant is appended to `tensors`.
  ///
  /// Errors    Format, Unsupported
  void add_node(std::span<const std::byte> message, std::vector<Tensor>& tensors);
  /// Adds a ValueInfoProto: the type of an input, if `is_input`, or of another value.
  ///
  /// Errors    Format, Unsupported
  void add_value_info(std::span<const std::byte> message, bool is_input);
  /// The graph, after its last node. `tensors`, sorted by name, are its constants, whose addresses it keeps;
  /// it takes `stored_bytes` in its file.
  ///
  /// Errors    Format for a value with two producers, of which one may be an initializer
  [[nodiscard]] OnnxGraph link(std::span<const Tensor> tensors, std::size_t stored_bytes);

 private:
  struct Arity {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
  };
  /// What a file states of a value before the values have numbers.
  struct ValueInfo {
    std::string_view name;
    bool is_input = false;
    bool has_extents = false;
    std::span<const std::int64_t> extents{};
  };
  [[nodiscard]] OnnxAttribute add_attribute(std::span<const std::byte> message, const OnnxNode& node,
                                            std::vector<Tensor>& tensors);
  void read_extents(std::span<const std::byte> tensor_type, ValueInfo& info);
  void add_constant(std::string_view name, Dtype dtype, std::span<const std::uint64_t> shape,
                    std::span<const std::byte> bytes, std::vector<Tensor>& tensors);
  void name_values();
  [[nodiscard]] ValueId value_of(std::string_view name) const;

  Arena& arena_;
  const std::string& where_;
  const OnnxFunctions& functions_;
  OnnxGraph graph_;
  std::vector<Arity> arities_;              // per node
  std::vector<std::string_view> operands_;  // node by node, inputs before outputs
  std::vector<ValueInfo> infos_;
};

}  // namespace normscope::checkpoint
