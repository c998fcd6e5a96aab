#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/dataset.hpp>
#include <normscope/nets/net.hpp>

namespace normscope::results {

/// Data of the animation from layer to layer: {"schema", "width", "labels": [rows], "states": [[[x, y, …]]]},
/// the samples, padded with zeros to the widest layer, and then every layer's output, each to four decimals
/// (docs/schemas/morph.schema.json). Frames in between are `nets::morph_frame`.
///
/// Source    [Winsor 2022], the morphs of spiral and sphere
///
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] nlohmann::ordered_json morph(const nets::Net& net, const nets::Dataset& data);

}  // namespace normscope::results
