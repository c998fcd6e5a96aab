#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <normscope/lnnet/net.hpp>
#include <normscope/lnnet/tasks.hpp>
#include <normscope/lnnet/train.hpp>

/// Figures of a training as Vega-Lite specifications that hold their data, and the data of the
/// animation; each is JSON text.
namespace normscope::lnnet {

/// Loss and accuracy over the steps, transitions marked.
/// Shapes    loss, accuracy (records)
[[nodiscard]] std::string curves_figure(std::span<const double> loss, std::span<const double> accuracy,
                                        std::size_t record_every, std::span<const Transition> marks);

/// Samples of the plane over the classes that the net gives a grid of `cells` × `cells` points.
/// Requires  data.width == 2
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] std::string boundary_figure(const Net& net, const Dataset& data, std::size_t cells = 80);

/// What an animation from layer to layer shows: {"width", "labels": [rows], "states": [[[x, y, …]]]},
/// the samples, filled up with zeros to the widest layer, and then every layer's output. At time s in
/// [l, l + 1] a point stands at (1 − (s − l)) states[l] + (s − l) states[l + 1].
/// Source    [Winsor 2022], the morphs of spiral and sphere
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] std::string morph(const Net& net, const Dataset& data);

}  // namespace normscope::lnnet
