#include "head.hpp"

#include <algorithm>
#include <limits>

namespace normscope::lnnet {
namespace {

struct Extent {
  std::uint32_t label = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  double sum = 0.0;
  double count = 0.0;

  [[nodiscard]] double mean() const { return sum / count; }
};

}  // namespace

Layer threshold_head(const std::vector<double>& values, const std::vector<std::uint32_t>& classes,
                     const std::vector<double>& readout, const std::vector<std::int64_t>& names,
                     std::vector<std::int64_t>& order) {
  std::vector<Extent> extents(names.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    Extent& extent = extents[classes[k]];
    extent.label = classes[k];
    extent.least = std::min(extent.least, values[k]);
    extent.most = std::max(extent.most, values[k]);
    extent.sum += values[k];
    extent.count += 1.0;
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.mean() < b.mean(); });
  Layer head{.in = readout.size(), .out = extents.size()};
  double thresholds = 0.0;
  order.clear();
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (k > 0) {
      const Extent& below = extents[k - 1];
      const Extent& above = extents[k];
      const bool apart = below.most < above.least;
      thresholds +=
          apart ? below.most + (above.least - below.most) / 2.0 : (below.mean() + above.mean()) / 2.0;
    }
    for (const double weight : readout) head.weight.push_back(static_cast<double>(k) * weight);
    head.bias.push_back(-thresholds);
    order.push_back(names[extents[k].label]);
  }
  return head;
}

}  // namespace normscope::lnnet
