#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <normscope/checkpoint/checkpoint.hpp>

/// Norms that tensors show by their names and shapes.
namespace normscope::model {

struct NamedNorm {
  std::string stem;  ///< the name of the gain without its ending
  std::string
      not_analysed{};  ///< "BatchNorm": what it is if its image is not computed; the rest is then unset
  const checkpoint::Tensor* gain = nullptr;
  const checkpoint::Tensor* bias = nullptr;
  const checkpoint::Tensor* alpha = nullptr;  ///< of an elementwise norm
  const checkpoint::Tensor* shift = nullptr;
  bool one_gain = false;  ///< one number for all features (ScaleNorm)
  bool is_group = false;  ///< its name says GroupNorm
};

/// The norm whose gain is `tensor`; empty if it is the gain of none. A norm over two or three axes has a gain
/// and a bias of that shape. Integers, running statistics and moments of an optimizer are gains of none.
/// Components of names are separated by '.' or '/'.
[[nodiscard]] std::optional<NamedNorm> norm_at(const checkpoint::Checkpoint& checkpoint,
                                               const checkpoint::Tensor& tensor);

/// `text` with A to Z in lower case.
[[nodiscard]] std::string lower(std::string_view text);

/// Whether `a` comes before `b` in the order of names in which digits count as numbers.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

}  // namespace normscope::model
