#pragma once

#include <vector>

#include "bench.hpp"

namespace normscope::bench {

/// LAPACK's divide and conquer (OpenBLAS) on the dense matrix G Π G, all eigenvalues and vectors:
/// the usual call if the structure is not used.
[[nodiscard]] Contender dsyevd(const std::vector<double>& gain);

}  // namespace normscope::bench
