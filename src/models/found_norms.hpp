#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <normscope/files/checkpoint.hpp>
#include <normscope/files/onnx_graph.hpp>
#include <normscope/models/model.hpp>

#include "config.hpp"

/// Norms that tensors show by their names and shapes.
namespace normscope::models {

struct NamedNorm {
  std::string stem;  ///< the name of the gain without its ending
  std::string
      not_analysed{};  ///< "BatchNorm": what it is if its image is not computed; the rest is then unset
  const files::Tensor* gain = nullptr;
  const files::Tensor* bias = nullptr;
  const files::Tensor* alpha = nullptr;  ///< of an elementwise norm
  const files::Tensor* shift = nullptr;
  bool one_gain = false;   ///< one number for all features (ScaleNorm)
  bool is_group = false;   ///< its name says GroupNorm
  std::uint64_t rows = 1;  ///< norms whose gains are the rows of one tensor: of layers, or of heads
  double eps = 1e-5;       ///< the default of the code that gives such names
  std::string_view eps_of = "PyTorch";  ///< whose default that is
  /// Why it may be another norm than its parameters tell; empty if nothing speaks for another.
  std::string_view doubt{};
  bool may_span_positions = false;  ///< whether that other norm may be a BatchNorm or a GroupNorm
};

/// The norm whose gain is `tensor`; empty if it is the gain of none. A norm over two or three axes has a gain
/// and a bias of that shape; other matrices with the name of a gain have a row for each layer or head.
/// Integers, running statistics and moments of an optimizer are gains of none. Components of names are
/// separated by '.' or '/'.
///
/// A place in a Sequential ("net.1") and "bn1" without running statistics are norms beside linear maps, but
/// not in a file that has convolutions.
[[nodiscard]] std::optional<NamedNorm> norm_at(const files::Checkpoint& checkpoint,
                                               const files::Tensor& tensor, bool has_convolutions);

/// Whether a tensor is the kernel of a convolution, by its shape.
[[nodiscard]] bool is_convolution(const files::Tensor& tensor);

/// Whether a tensor is a vector of features that is no bias by its name, so that it may be a gain.
[[nodiscard]] bool may_be_a_gain(const files::Tensor& tensor);

/// `text` with A to Z in lower case.
[[nodiscard]] std::string lower(std::string_view text);

/// Whether `a` comes before `b` in the order of names in which digits count as numbers.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

/// Appends the norms that the checkpoint itself states, `all`, in their order; repeated parameters count as
/// another application. If `model` already has norms, the position of these among them is unknown. Linear
/// maps that read them directly are listed; their writers are unknown. Notes name the maps that are not
/// understood.
void append_stated_norms(const files::Checkpoint& checkpoint, std::span<const StatedNorm> all, Model& model);

/// Counts and notes operators that normalize and are not understood.
void note_not_understood(std::span<const std::string> operators, Model& model);

/// Counts norms of a kind that is not analysed.
void add_other_norms(Model& model, const std::string& kind, std::size_t count);

/// At most ten of `texts`, separated by commas, and how many more there are.
[[nodiscard]] std::string first_of(std::span<const std::string> texts);

/// Replaces an assumed eps of a norm by the eps that one of `all` has for its gain; notes which of `all`
/// contradict the model.
void take_stated_eps(std::span<const StatedNorm> all, Model& model);

/// Appends the norms that a Keras configuration states (metadata `model_config`), in the order of its layers,
/// with kind, eps and groups, and returns the names of their tensors. A layer is found among the weights by
/// its name: as a component of theirs ("early/gamma:0"), or where Keras 3 names the group
/// ("layers/x/vars@name"). Norms whose weights or width the file does not show are noted and left out. Other
/// files state none.
[[nodiscard]] std::set<std::string, std::less<>> append_keras_norms(const files::Checkpoint& checkpoint,
                                                                    Model& model);

/// The norms in a graph, as `stated_norms`; errors name `file`.
///
/// Errors    as `stated_norms`
[[nodiscard]] StatedNorms find_onnx_norms(const files::OnnxGraph& graph, const std::string& file);

/// How many operators of the graph normalize in a way that is not analysed, by kind: "BatchNorm" and others.
[[nodiscard]] std::map<std::string, std::size_t> other_onnx_norms(const files::OnnxGraph& graph);

/// Appends norms recognised by name and shape among the tensors that are not `described` (see `norm_at`), in
/// the order of their names: their place in the forward pass, their readers and writers are unknown. Counts
/// the norms that are not analysed, by kind.
void append_found_norms(const files::Checkpoint& checkpoint, const Config& config,
                        const std::function<bool(const files::Tensor&)>& described, Model& model);

}  // namespace normscope::models
