#pragma once

#include <vector>

#include "bench.hpp"

namespace normscope::bench {

/// LAPACK's divide and conquer (OpenBLAS) on the dense matrix G Π G, all eigenvalues and vectors:
/// what one calls without the structure.
[[nodiscard]] Contender dsyevd(const std::vector<double>& gain);

}  // namespace normscope::bench
