#pragma once

#include <normscope/rewrite/compare.hpp>

#include "compare_content.hpp"

namespace normscope::rewrite {

/// Differences and rewrites as sentences. `norms` are those of `comparison`.
void add_findings(const checkpoint::Checkpoint& old_file, const model::Model& old_model,
                  const checkpoint::Checkpoint& new_file, const model::Model& new_model,
                  const NormPairs& norms, Comparison& comparison);

}  // namespace normscope::rewrite
