#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {

/// Collects the gains of a model's norms, one at a time, and finds the features that are unusual in many.
class FeatureCollector {
 public:
  /// Finds outliers, switched-off features and sign changes of a finite gain, and keeps it unless the norm is
  /// inside attention, where coordinates are not those of the stream.
  void measure(std::size_t index, std::span<const double> gain, NormReport& report);

  /// Up to `listed_features`, those unusual in most norms first, then those with the most unusual gain.
  [[nodiscard]] std::vector<UnusualFeature> features(const std::vector<NormReport>& norms) const;

 private:
  struct Row {
    std::size_t norm = 0;
    std::vector<float> ratios{};  ///< |gain| over the median
  };
  std::vector<Row> rows_{};
  std::size_t stored_ = 0;
};

}  // namespace normscope::analysis
