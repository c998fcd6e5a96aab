#include "classes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/sum.hpp>

namespace normscope::nets {
namespace {

Classes classes_of(std::span<const std::size_t> labels) {
  Classes classes;
  std::map<std::size_t, std::size_t> numbers;
  for (const std::size_t label : labels) {
    const auto [at, added] = numbers.try_emplace(label, numbers.size());
    if (added) classes.sizes.push_back(0);
    classes.of_row.push_back(at->second);
    ++classes.sizes[at->second];
  }
  return classes;
}

}  // namespace

Classes checked_classes(MatrixView<const double> x, std::span<const std::size_t> labels) {
  if (x.rows() != labels.size() || x.width() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("separability: x is {} x {} with {} labels, expected one label per row", x.rows(),
                            x.width(), labels.size()));
  }
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (const double value : x.row(row)) {
      if (!std::isfinite(value)) {
        throw Error(ErrorCode::Argument,
                    fmt::format("separability: row {} has {}, expected finite numbers", row, value));
      }
    }
  }
  Classes classes = classes_of(labels);
  if (classes.sizes.size() < 2) {
    throw Error(ErrorCode::Argument, fmt::format("separability: labels name {} classes, expected at least 2",
                                                 classes.sizes.size()));
  }
  return classes;
}

std::vector<double> class_means(std::span<const double> feature, const Classes& classes) {
  std::vector<CompensatedSum> sums(classes.sizes.size());
  for (std::size_t row = 0; row < feature.size(); ++row) sums[classes.of_row[row]].add(feature[row]);
  std::vector<double> means;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    means.push_back(sums[c].value() / static_cast<double>(classes.sizes[c]));
  }
  return means;
}

double Squares::ratio() const {
  return total > 0.0 ? std::clamp(within / total, 0.0, 1.0) : std::numeric_limits<double>::quiet_NaN();
}

Squares squares_of(std::span<const double> feature, const Classes& classes) {
  const std::vector<double> means = class_means(feature, classes);
  CompensatedSum within;
  CompensatedSum total;
  for (std::size_t row = 0; row < feature.size(); ++row) {
    const double deviation = feature[row] - means[classes.of_row[row]];
    within.add(deviation * deviation);
    total.add(feature[row] * feature[row]);
  }
  return {within.value(), total.value()};
}

void for_each_feature(MatrixView<const double> x, unsigned threads,
                      const std::function<void(std::size_t, std::span<double>)>& body) {
  // As many features as share a cache line of a row, which is then read once for all.
  constexpr std::size_t together = 8;
  const std::size_t runs = (x.width() + together - 1) / together;
  parallel_for(runs, 1, threads, [&](std::size_t first_run, std::size_t last_run) {
    std::vector<double> features(together * x.rows());
    for (std::size_t run = first_run; run < last_run; ++run) {
      const std::size_t first = run * together;
      const std::size_t count = std::min(together, x.width() - first);
      for (std::size_t row = 0; row < x.rows(); ++row) {
        const std::span<const double> values = x.row(row).subspan(first, count);
        for (std::size_t i = 0; i < count; ++i) features[i * x.rows() + row] = values[i];
      }
      for (std::size_t i = 0; i < count; ++i) body(first + i, {features.data() + i * x.rows(), x.rows()});
    }
  });
}

BinaryScale scale_of(std::span<const double> feature) {
  if (feature.empty()) return {};
  const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
  const double difference = *high - *low;
  return BinaryScale::of(std::isfinite(difference) ? difference : std::numeric_limits<double>::max());
}

BinaryScale common_scale(MatrixView<const double> x, unsigned threads) {
  std::vector<double> differences(x.width());
  for_each_feature(x, threads, [&](std::size_t index, std::span<double> feature) {
    if (feature.empty()) return;
    const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
    differences[index] = std::min(*high - *low, std::numeric_limits<double>::max());
  });
  return BinaryScale::of(differences);
}

void center_feature(std::span<double> feature, const BinaryScale& scale) {
  if (feature.empty()) return;
  const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
  if (*low == *high) return std::fill(feature.begin(), feature.end(), 0.0);
  scale.divide(feature);
  center(feature);
}

}  // namespace normscope::nets
