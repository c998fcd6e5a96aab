#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/signature/extract.hpp>

namespace normscope::figures {

/// Singular values of outputs over their index, as a Vega-Lite specification with its data, with the rank of
/// the subspace and the level of rounding marked.
[[nodiscard]] nlohmann::ordered_json singular_values(const signature::Subspace& subspace);

}  // namespace normscope::figures
