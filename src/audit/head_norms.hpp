#pragma once

#include <string>

#include <normscope/model/model.hpp>

/// The norms that a head's queries and keys go through.
namespace normscope::audit {

/// Null for a name that no norm has.
[[nodiscard]] const model::Norm* norm_named(const model::Model& model, const std::string& name);

/// The norm applied to queries or keys before the scores; null if there is none.
[[nodiscard]] const model::Norm* own_norm(const model::Model& model, const model::Linear& part);

/// Why a head's scores are not q·k for two linear maps of the output of the norm `read`, apart from norms of
/// the head's own; empty if they are. `between` is null, or the map between that norm and the head's.
[[nodiscard]] std::string head_refusal(const model::Model& model, const model::Head& head,
                                       const std::string& read, const model::Linear* between);

}  // namespace normscope::audit
