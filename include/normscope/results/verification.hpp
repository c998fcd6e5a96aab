#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include <normscope/verify/verify.hpp>

namespace normscope::results {

/// The verification of a result of `kind` ("select", "reach", …), schema "normscope.verify/1"
/// (docs/schemas/verify.schema.json).
[[nodiscard]] nlohmann::ordered_json verification(const std::string& kind, const verify::Verification& found);

}  // namespace normscope::results
