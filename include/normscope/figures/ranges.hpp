#pragma once

#include <nlohmann/json_fwd.hpp>

#include <normscope/ranges/ranges.hpp>

namespace normscope::figures {

/// How large numbers behind norms become beside what small types hold, what that costs a quantizer, and rows
/// that never change sign, in the form of `charts`. Readers of one role behind one norm, such as experts, are
/// one mark.
[[nodiscard]] nlohmann::ordered_json range_charts(const ranges::ModelRanges& found);

}  // namespace normscope::figures
