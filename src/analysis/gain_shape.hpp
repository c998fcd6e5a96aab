#pragma once

#include <span>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {

/// Fills `gain_sizes` and `gain_blocks` of `report` from a gain whose entries are finite.
void add_gain_shape(std::span<const double> gain, NormReport& report);

}  // namespace normscope::analysis
