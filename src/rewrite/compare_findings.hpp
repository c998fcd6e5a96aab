#pragma once

#include <normscope/rewrite/compare.hpp>

#include "compare_content.hpp"

namespace normscope::rewrite {

/// Differences and rewrites as sentences. `norms` are those of `comparison`.
void add_findings(const files::Checkpoint& old_file, const models::Model& old_model,
                  const files::Checkpoint& new_file, const models::Model& new_model, const NormPairs& norms,
                  Comparison& comparison);

}  // namespace normscope::rewrite
