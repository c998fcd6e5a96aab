#include <normscope/analysis/spectrum.hpp>

#include <algorithm>
#include <cmath>

namespace normscope::analysis {

std::vector<std::size_t> thinned_ranks(std::size_t count, std::size_t points) {
  std::vector<std::size_t> ranks;
  if (count <= points) {
    for (std::size_t rank = 1; rank <= count; ++rank) ranks.push_back(rank);
    return ranks;
  }
  const double step = std::log(static_cast<double>(count)) / static_cast<double>(points - 1);
  for (std::size_t i = 0; i < points; ++i) {
    const auto rank = static_cast<std::size_t>(std::lround(std::exp(step * static_cast<double>(i))));
    if (ranks.empty() || rank > ranks.back()) ranks.push_back(std::min(rank, count));
  }
  return ranks;
}

}  // namespace normscope::analysis
