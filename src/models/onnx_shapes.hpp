#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <normscope/files/onnx_graph.hpp>

namespace normscope::models {

/// An extent of a value that depends on the input, or that is not followed.
inline constexpr std::int64_t unknown_extent = -1;

/// The extents of a graph's values, from its constants, what it states of inputs and values, and the
/// operators that exporters use. Contradictions are unknown.
class OnnxShapes {
 public:
  using Extents = std::vector<std::int64_t>;

  /// Calls `charge` with the bytes that the result keeps.
  ///
  /// Cost      O(nodes · operands)
  OnnxShapes(const files::OnnxGraph& graph, const std::function<void(std::size_t)>& charge);

  /// The extents of `value`, each positive or unknown; empty if their number is not known.
  [[nodiscard]] std::optional<Extents> of(files::ValueId value) const;

 private:
  [[nodiscard]] std::optional<Extents> infer(const files::OnnxNode& node) const;
  [[nodiscard]] std::optional<Extents> reshaped(const files::OnnxNode& node) const;
  [[nodiscard]] std::optional<Extents> concatenated(const files::OnnxNode& node) const;
  [[nodiscard]] std::optional<Extents> gathered(const files::OnnxNode& node) const;
  /// What an operator Shape gives.
  [[nodiscard]] std::optional<Extents> shape_of_input(const files::OnnxNode& node) const;
  /// The numbers in a list of integers that is computed, such as the shape that a Reshape is given.
  [[nodiscard]] std::optional<Extents> infer_numbers(const files::OnnxNode& node) const;
  [[nodiscard]] std::optional<Extents> numbers(files::ValueId value) const;
  void keep(files::ValueId value, const Extents& extents);

  const files::OnnxGraph& graph_;
  const std::function<void(std::size_t)>& charge_;
  std::map<files::ValueId, Extents> extents_{};
  std::map<files::ValueId, Extents> numbers_{};
};

/// The integers in a constant of at most eight of them, or empty.
[[nodiscard]] std::optional<std::vector<std::int64_t>> constant_integers(const files::OnnxGraph& graph,
                                                                         files::ValueId value);

/// The axes that an operator reduces, removes or adds, as the attribute "axes" or a second input, of an
/// operator that has no attributes besides `known`; empty if the graph does not determine them.
[[nodiscard]] std::optional<std::vector<std::int64_t>> axes_of(const files::OnnxGraph& graph,
                                                               const files::OnnxNode& node,
                                                               std::span<const files::OnnxNode::Known> known);

/// As above, of an operator that reduces; none for a reduction of all axes.
[[nodiscard]] std::optional<std::vector<std::int64_t>> reduced_axes(const files::OnnxGraph& graph,
                                                                    const files::OnnxNode& node);

/// `axis` of `rank` axes counted from the end, -1 for the last; empty if it is none of them.
[[nodiscard]] std::optional<std::int64_t> from_end(std::int64_t axis, std::size_t rank);

}  // namespace normscope::models
