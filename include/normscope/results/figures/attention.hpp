#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include <normscope/selectability/select.hpp>

namespace normscope::figures {

/// Attention weights as bars over the keys, coloured by whether a key can be selected at all, as a Vega-Lite
/// specification whose data set is called "weights".
///
/// Requires  one verdict per weight
[[nodiscard]] nlohmann::ordered_json attention_bars(std::span<const double> weights,
                                                    const selectability::Selection& selection);

}  // namespace normscope::figures
