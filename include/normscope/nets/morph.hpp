#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/nets/dataset.hpp>
#include <normscope/nets/net.hpp>

/// The animation of a data set from layer to layer.
namespace normscope::nets {

/// Rows after every layer, padded to the width of the widest: entry 0 is the input, entry l the output of
/// layer l.
struct MorphStates {
  std::size_t width = 0;
  std::vector<std::vector<double>> list{};
};

/// Shapes    x (rows, net.in()) → layers + 1 times rows × width
///
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] MorphStates morph_states(const Net& net, MatrixView<const double> x);

/// As `morph_states`, every layer in its two steps: entry 2 l − 1 is W_l · + b_l of the entry before, entry
/// 2 l the output of layer l.
///
/// Shapes    x (rows, net.in()) → 2 layers + 1 times rows × width
///
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] MorphStates morph_steps(const Net& net, MatrixView<const double> x);

/// Positions of the samples at time `at` in [l, l + 1]:  (1 − (at − l)) states[l] + (at − l) states[l + 1].
///
/// Shapes    rows × widest layer
///
/// Requires  0 <= at <= layers
[[nodiscard]] std::vector<double> morph_frame(const Net& net, const Dataset& data, double at);

}  // namespace normscope::nets
