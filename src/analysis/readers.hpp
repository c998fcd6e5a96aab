#pragma once

#include <span>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {

/// Fills `report.readers` with statistics of how each reader uses the norm; readers whose weights are
/// missing, not finite or of an unsupported type are left out. `longest` is the unit vector of the image's
/// longest axis, or empty.
///
/// Errors    Cancelled
///
/// Cost      the readers' weights are read once, a block of rows at a time
void measure_readers(const files::Checkpoint& checkpoint, const NormSpec& norm,
                     std::span<const double> longest, unsigned threads, const Progress& poll,
                     NormReport& report);

}  // namespace normscope::analysis
