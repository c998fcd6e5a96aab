#include "features.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "median.hpp"

namespace normscope::analysis {
namespace {

/// Gains kept to find features through depth: 256 MiB. Norms beyond are left out.
constexpr std::size_t most_stored = std::size_t{1} << 26;

/// How far a ratio to the median is from 1, in either direction.
double strangeness(double ratio) {
  return ratio == 0.0 ? std::numeric_limits<double>::infinity() : std::abs(std::log(ratio));
}

}  // namespace

void FeatureCollector::measure(std::size_t index, std::span<const double> gain, NormReport& report) {
  // If many features are erased, the median of the others is the reference.
  std::vector<double> magnitudes;
  for (const double g : gain) {
    if (g != 0.0) magnitudes.push_back(std::abs(g));
  }
  if (magnitudes.empty()) return;
  const double typical = median(std::move(magnitudes));
  Row row{.norm = index};
  row.ratios.reserve(gain.size());
  for (std::size_t i = 0; i < gain.size(); ++i) {
    const double ratio = std::abs(gain[i]) / typical;
    row.ratios.push_back(static_cast<float>(ratio));
    if (ratio >= outlier_ratio) report.outliers.push_back({i, gain[i], ratio});
    if (ratio <= off_ratio) {
      report.switched_off.push_back({i, gain[i], ratio});
    } else if (gain[i] < 0.0) {
      ++report.sign_changes;
    }
  }
  std::stable_sort(report.outliers.begin(), report.outliers.end(),
                   [](const Outlier& a, const Outlier& b) { return a.ratio_to_median > b.ratio_to_median; });
  if (report.norm.placement == models::Placement::inside || stored_ + gain.size() > most_stored) return;
  stored_ += gain.size();
  rows_.push_back(std::move(row));
}

std::vector<UnusualFeature> FeatureCollector::features(const std::vector<NormReport>& norms) const {
  using Key = std::tuple<std::string, std::size_t, std::size_t>;  // stack, width, coordinate
  std::map<Key, UnusualFeature> found;
  const auto feature = [&](std::size_t norm, std::size_t coordinate) -> UnusualFeature& {
    UnusualFeature& it = found[{norms[norm].norm.stack, norms[norm].norm.width, coordinate}];
    it.coordinate = coordinate;
    it.stack = norms[norm].norm.stack;
    return it;
  };
  for (const Row& row : rows_) {
    for (const Outlier& off : norms[row.norm].switched_off) {
      feature(row.norm, off.coordinate).off.push_back(row.norm);
    }
    for (const Outlier& outlier : norms[row.norm].outliers) {
      feature(row.norm, outlier.coordinate).outliers.push_back(row.norm);
    }
  }
  std::vector<std::pair<UnusualFeature, double>> ranked;  // with the most unusual ratio
  for (auto& [key, one] : found) {
    double most = 0.0;
    for (const Row& row : rows_) {
      const models::Norm& norm = norms[row.norm].norm;
      if (norm.stack != std::get<0>(key) || norm.width != std::get<1>(key)) continue;
      const double ratio = static_cast<double>(row.ratios[one.coordinate]);
      one.norms.push_back(row.norm);
      one.ratios.push_back(ratio);
      most = std::max(most, strangeness(ratio));
    }
    ranked.emplace_back(std::move(one), most);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    const std::size_t more = a.first.unusual();
    const std::size_t less = b.first.unusual();
    return more != less ? more > less : a.second > b.second;
  });
  std::vector<UnusualFeature> result;
  for (std::size_t i = 0; i < std::min(ranked.size(), listed_features); ++i) {
    result.push_back(std::move(ranked[i].first));
  }
  return result;
}

}  // namespace normscope::analysis
