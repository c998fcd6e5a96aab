#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/signature/extract.hpp>

namespace normscope::figures {

/// Singular values of outputs against their number as a Vega-Lite specification with its data: the end of the
/// subspace, and what rounding makes of the rest.
[[nodiscard]] nlohmann::ordered_json singular_values(const signature::Subspace& subspace);

}  // namespace normscope::figures
