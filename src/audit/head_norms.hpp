#pragma once

#include <string>

#include <normscope/model/model.hpp>

namespace normscope::audit {

/// Why a head's scores are not q·k for two linear maps of the output of the norm `read`, apart from norms of
/// the head's own; empty if they are. `between` is null, or the map between that norm and the head's.
[[nodiscard]] std::string head_refusal(const model::Model& model, const model::Head& head,
                                       const std::string& read, const model::Linear* between);

}  // namespace normscope::audit
