#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/lnnet/dataset.hpp>
#include <normscope/lnnet/net.hpp>

namespace normscope::documents {

/// Data of the animation from layer to layer: {"schema", "width", "labels": [rows], "states": [[[x, y, …]]]},
/// the samples, padded with zeros to the widest layer, and then every layer's output, each to four decimals
/// (docs/schemas/morph.schema.json). Frames in between are `lnnet::morph_frame`.
///
/// Source    [Winsor 2022], the morphs of spiral and sphere
///
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] nlohmann::ordered_json morph(const lnnet::Net& net, const lnnet::Dataset& data);

}  // namespace normscope::documents
