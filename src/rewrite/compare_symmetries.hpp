#pragma once

#include <set>
#include <string>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/compare.hpp>

#include "compare_content.hpp"

namespace normscope::rewrite {

/// Tensors of NEW that differ from those of OLD as another one makes up for: neurons of an MLP in another
/// order; features of values, or of queries, that are scaled, with the output or the keys scaled back. Such
/// models may compute the same. Adds a sentence for each to `not_compared`.
///
/// Requires  norms and writers are compared
[[nodiscard]] std::set<std::string> made_up_for(const files::Checkpoint& old_file,
                                                const models::Model& old_model,
                                                const files::Checkpoint& new_file,
                                                const models::Model& new_model, const NormPairs& norms,
                                                Comparison& result);

}  // namespace normscope::rewrite
