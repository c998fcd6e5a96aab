#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/ranges.hpp>

namespace normscope::figures {

/// The largest numbers behind norms beside the limits of small types, the cost of the worst case for a
/// quantizer, and rows that never change sign, in the form of `charts`. Readers of one role behind one norm,
/// such as experts, are one mark.
[[nodiscard]] nlohmann::ordered_json range_charts(const analysis::ModelRanges& found);

}  // namespace normscope::figures
