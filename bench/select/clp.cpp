#include "clp.hpp"

#include "../../tests/support/hull_lp.hpp"

namespace normscope::bench {

std::vector<double> inside_by_programs(MatrixView<const double> keys,
                                       const std::vector<std::size_t>& sample) {
  support::HullPrograms programs(keys);
  std::vector<double> result;
  for (const std::size_t key : sample) result.push_back(programs.inside(key) ? 1.0 : 0.0);
  return result;
}

}  // namespace normscope::bench
