#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <normscope/analysis/report.hpp>

/// What `audit` measures of gains and readers.
namespace normscope::analysis {

/// The middle of the values, the mean of the middle two for an even number; 0 for none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * *middle + 0.5 * *std::max_element(values.begin(), middle);
}

/// The `count` entries of largest magnitude, in descending order.
[[nodiscard]] inline std::vector<Component> largest_components(const std::vector<double>& vector,
                                                               std::size_t count) {
  std::vector<std::size_t> order(vector.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double x = std::abs(vector[a]);
                      const double y = std::abs(vector[b]);
                      return x != y ? x > y : a < b;
                    });
  std::vector<Component> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back({order[i], vector[order[i]]});
  return result;
}

/// Fills `gain_sizes` and `gain_blocks` of `report` from a gain whose entries are finite.
void add_gain_shape(std::span<const double> gain, NormReport& report);

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

/// Fills `embedding` of the features of `report` whose stream a token embedding of at most 2^27 entries
/// writes to. Weights that cannot be read leave the rest of the report as it is.
///
/// Errors    Cancelled
///
/// Cost      reads the embedding once; memory a block of its rows
void add_embedding_uses(const files::Checkpoint& checkpoint, Report& report, const Progress& progress);

/// Fills `ratios` and `readers` of those of the first causes that are about a coordinate.
///
/// Errors    Cancelled
///
/// Cost      reads the gains of the stream, and the weights of all that reads the causes' norms and is
///           `readers_within` the budget
void add_coordinate_details(const files::Checkpoint& checkpoint, double budget, const Progress& progress,
                            Report& report);

/// Fills `report.readers` with statistics of how each reader `within` the budget uses the norm; readers whose
/// weights are missing, not finite or of an unsupported type are left out. `longest` is the unit vector of
/// the image's longest axis, or empty.
///
/// Errors    Cancelled
///
/// Cost      the readers' weights are read once, a block of rows at a time
void measure_readers(const files::Checkpoint& checkpoint, const NormSpec& norm,
                     std::span<const double> longest, const std::vector<bool>& within, unsigned threads,
                     const Progress& poll, NormReport& report);

}  // namespace normscope::analysis
