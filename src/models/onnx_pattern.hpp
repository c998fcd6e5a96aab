#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/norm_spec.hpp>
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

/// A constant of a graph, up to casts between floating types, reshapes and an added 1.
struct GraphParameter {
  const files::Tensor* tensor = nullptr;  ///< as stored
  files::ValueId stored = files::no_value;
  double offset = 0.0;            ///< 1 where the graph adds 1 to what is stored
  OnnxShapes::Extents extents{};  ///< after reshapes; their product is the tensor's size
};

/// A norm expressed as arithmetic.
struct WrittenNorm {
  NormKind kind = NormKind::layer;
  const files::OnnxNode* root = nullptr;  ///< computes the square root; identifies the norm
  files::ValueId input = files::no_value;
  std::optional<GraphParameter> gain{};  ///< of more than one element
  double eps = 0.0;
  std::int64_t axis = -1;   ///< counted from the end
  std::uint64_t count = 0;  ///< what sums are divided by, which has to be the width; 0 if no sum is
  std::vector<std::string> reasons{};  ///< as `StatedNorm::reasons`, without the bias
};

/// The operator of a node with its name, or that of its output: "Sqrt root".
[[nodiscard]] std::string title_of(const files::OnnxGraph& graph, const files::OnnxNode& node);

/// Why the product `node`, of which a root's inverse is a factor, is no norm; empty if it is one or if the
/// root is none of a statistic.
[[nodiscard]] std::string why_no_product(const files::OnnxGraph& graph, const OnnxShapes& shapes,
                                         const files::OnnxNode& node);

/// Why nothing that a square root (or a length) divides is a norm, if a sum or mean of something enters it;
/// empty for any other root.
///
/// Cost      bounded, for every graph
[[nodiscard]] std::string why_no_norm(const files::OnnxGraph& graph, const OnnxShapes& shapes,
                                      const files::OnnxNode& root);
/// Whether `node` takes a square root, or its inverse, or a length.
[[nodiscard]] bool is_root(const files::OnnxGraph& graph, const OnnxShapes& shapes,
                           const files::OnnxNode& node);

/// The norm whose scaled output is `node`, if that is a product of
///   x − mean x, or x for RMSNorm and projections onto a sphere,
///   1 / sqrt(variance + eps), with the variance mean (x − mean x)² or mean x² − (mean x)², or
///   mean x² for RMSNorm, or sum x² for a projection, which may be clamped at 0; without eps also 1 /
///   ReduceL2(x), and at most one constant vector, the gain, to which 1 may be added,
/// in any order and grouping, over one axis, with casts between floating types anywhere and with reshapes
/// that put statistics beside the rows of x they are of. Operators with an attribute that is not known match
/// nothing.
///
/// Cost      bounded, for every graph
[[nodiscard]] std::optional<WrittenNorm> match_norm(const files::OnnxGraph& graph, const OnnxShapes& shapes,
                                                    const files::OnnxNode& node);

/// The parameter that `value` is; empty if it is none, or none of known extents.
[[nodiscard]] std::optional<GraphParameter> parameter_of(const files::OnnxGraph& graph,
                                                         const OnnxShapes& shapes, files::ValueId value);

/// Whether the operator is Identity or a cast to a floating type, which changes its operand by rounding at
/// most.
[[nodiscard]] bool changes_nothing(const files::OnnxNode& node);

/// Whether `node` is that operator of ONNX without attributes.
[[nodiscard]] bool is_plain(const files::OnnxNode& node, std::string_view op);

}  // namespace normscope::models
