#include "head.hpp"

#include <algorithm>
#include <limits>

#include <normscope/core/exact.hpp>

#include "predict.hpp"

namespace normscope::nets {

namespace {

template <typename T>
struct Extent {
  std::uint32_t label = 0;
  T least = std::numeric_limits<double>::infinity();
  T most = -std::numeric_limits<double>::infinity();
  T sum = 0.0;
  double count = 0.0;

  [[nodiscard]] T mean() const { return sum / T(count); }
};

}  // namespace

template <typename T>
Layer threshold_head(const std::vector<T>& values, const std::vector<std::uint32_t>& classes,
                     const std::vector<T>& readout, const std::vector<std::int64_t>& names,
                     std::vector<std::int64_t>& order) {
  std::vector<Extent<T>> extents(names.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    Extent<T>& extent = extents[classes[k]];
    extent.label = classes[k];
    extent.least = std::min(extent.least, values[k]);
    extent.most = std::max(extent.most, values[k]);
    extent.sum += values[k];
    extent.count += 1.0;
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent<T>& a, const Extent<T>& b) { return a.mean() < b.mean(); });
  std::vector<T> weight;
  std::vector<T> bias;
  T thresholds = 0.0;
  order.clear();
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (k > 0) {
      const Extent<T>& below = extents[k - 1];
      const Extent<T>& above = extents[k];
      thresholds += below.most < above.least ? below.most + (above.least - below.most) / T(2.0)
                                             : (below.mean() + above.mean()) / T(2.0);
    }
    for (const T& value : readout) weight.push_back(T(static_cast<double>(k)) * value);
    bias.push_back(-thresholds);
    order.push_back(names[extents[k].label]);
  }
  return affine_layer(weight, bias);
}

template Layer threshold_head(const std::vector<double>&, const std::vector<std::uint32_t>&,
                              const std::vector<double>&, const std::vector<std::int64_t>&,
                              std::vector<std::int64_t>&);
template Layer threshold_head(const std::vector<DoubleDouble>&, const std::vector<std::uint32_t>&,
                              const std::vector<DoubleDouble>&, const std::vector<std::int64_t>&,
                              std::vector<std::int64_t>&);

}  // namespace normscope::nets
