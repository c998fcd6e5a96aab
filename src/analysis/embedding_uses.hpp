#pragma once

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {

/// Fills `embedding` of the features of `report` whose stream a token embedding of at most 2^27 entries
/// writes to. Weights that cannot be read leave the rest of the report as it is.
///
/// Errors    Cancelled
///
/// Cost      reads the embedding once; memory a block of its rows
void add_embedding_uses(const files::Checkpoint& checkpoint, Report& report, const Progress& progress);

}  // namespace normscope::analysis
