#pragma once

#include <span>

#include <normscope/audit/report.hpp>

namespace normscope::audit {

/// Fills `report.readers` with statistics of how each reader uses the norm; readers whose weights are
/// missing, not finite or of an unsupported type are left out. `longest` is the unit vector of the image's
/// longest axis, or empty.
///
/// Errors    Cancelled
///
/// Cost      the readers' weights are read once, a block of rows at a time
void measure_readers(const checkpoint::Checkpoint& checkpoint, const NormSpec& norm,
                     std::span<const double> longest, unsigned threads, const Progress& poll,
                     NormReport& report);

}  // namespace normscope::audit
