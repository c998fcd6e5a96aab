#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/checkpoint/onnx_graph.hpp>

#include "parsed_file.hpp"

namespace normscope::checkpoint {

/// Reads a graph node by node.
class OnnxGraphReader {
 public:
  OnnxGraphReader(Arena& arena, const std::string& where) : arena_(arena), where_(where) {}

  /// Adds a NodeProto; the value of a Constant is appended to `tensors`.
  ///
  /// Errors    Format, Unsupported
  void add_node(std::span<const std::byte> message, std::vector<Tensor>& tensors);
  /// The graph, after its last node. `tensors`, sorted by name, are its constants, whose addresses it keeps;
  /// it takes `stored_bytes` in its file.
  ///
  /// Errors    Format for a value with two producers
  [[nodiscard]] OnnxGraph link(std::span<const Tensor> tensors, std::size_t stored_bytes);

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
  OnnxGraph graph_;
  std::vector<Arity> arities_;              // per node
  std::vector<std::string_view> operands_;  // node by node, inputs before outputs
};

}  // namespace normscope::checkpoint
