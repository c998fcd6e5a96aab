#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <normscope/files/checkpoint.hpp>

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

}  // namespace normscope::models
