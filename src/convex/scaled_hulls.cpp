#include "scaled_hulls.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/exact.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::convex {
namespace {

/// Number of multiplications from which another thread pays off.
constexpr std::size_t grain = 1'000'000;

/// Σ x_i y_i in eight interleaved partial sums, which compilers vectorize.
double product(std::span<const double> x, std::span<const double> y) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= x.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  for (; i < x.size(); ++i) sums[0] += x[i] * y[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace

HullFrame::HullFrame(MatrixView<const double> a, MatrixView<const double> b)
    : center(a.width()), extents(a.width()) {
  const double rows = static_cast<double>(a.rows() + b.rows());
  std::vector<CompensatedSum> totals(a.width());
  std::vector<double> low(a.row(0).begin(), a.row(0).end());
  std::vector<double> high = low;
  for (const MatrixView<const double>& set : {a, b}) {
    for (std::size_t row = 0; row < set.rows(); ++row) {
      const std::span<const double> values = set.row(row);
      for (std::size_t i = 0; i < totals.size(); ++i) {
        totals[i].add(values[i] / rows);
        low[i] = std::min(low[i], values[i]);
        high[i] = std::max(high[i], values[i]);
      }
    }
  }
  for (std::size_t i = 0; i < center.size(); ++i) {
    center[i] = std::clamp(totals[i].value(), low[i], high[i]);
    extents[i] = std::max(high[i] - center[i], center[i] - low[i]);
  }
}

double HullFrame::spread() const {
  double least = std::numeric_limits<double>::infinity();
  for (const double extent : extents) {
    if (extent > 0.0) least = std::min(least, extent);
  }
  const double largest = std::min(scale(), std::numeric_limits<double>::max());
  return largest > 0.0 ? largest / least : 1.0;
}

ScaledHulls::ScaledHulls(MatrixView<const double> a, MatrixView<const double> b, const HullFrame& frame,
                         Columns columns, unsigned threads)
    : a_(a), b_(b), threads_(threads), center_(frame.center), values_(rows() * a.width()), lengths_(rows()) {
  const auto scale_of = [](double size) {
    return BinaryScale::of(std::min(std::abs(size), std::numeric_limits<double>::max()));
  };
  const BinaryScale common = scale_of(frame.scale());
  for (std::size_t i = 0; i < center_.size(); ++i) {
    // A constant column may be too large for the scale of the others; its entries become zero.
    const bool varies = frame.extents[i] > 0.0;
    scales_.push_back(
        columns == Columns::alike && varies ? common : scale_of(varies ? frame.extents[i] : frame.center[i]));
    center_[i] = scales_[i].divide(frame.center[i]);
  }
  parallel_for(rows(), 1 + grain / (8 * a.width()), threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const bool of_a = group(r) == 0;
      const std::span<const double> given = of_a ? a_.row(r) : b_.row(r - a_.rows());
      double* to = values_.data() + r * center_.size();
      for (std::size_t i = 0; i < center_.size(); ++i) {
        const double value = scales_[i].divide(given[i]);
        to[i] = of_a ? value - center_[i] : center_[i] - value;
      }
      lengths_[r] = std::sqrt(product(row(r), row(r)));
    }
  });
  longest_ = largest_size(lengths_);
}

ScaledHulls::Exact ScaledHulls::exact(std::size_t row) const {
  const bool of_a = group(row) == 0;
  const std::span<const double> given = of_a ? a_.row(row) : b_.row(row - a_.rows());
  Exact result(dimension());
  for (std::size_t i = 0; i < center_.size(); ++i) {
    const DoubleDouble difference = two_sum(scales_[i].divide(given[i]), -center_[i]);
    result[static_cast<Eigen::Index>(i)] = of_a ? difference : -difference;
  }
  return result;
}

double ScaledHulls::score(std::span<const double> direction, std::size_t row) const {
  return product(this->row(row), direction);
}

void ScaledHulls::score(std::span<const double> direction, std::size_t first, std::size_t last,
                        std::vector<double>& scores) const {
  parallel_for(last - first, 1 + grain / center_.size(), threads_, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = first + begin; r < first + end; ++r) scores[r] = product(row(r), direction);
  });
}

double ScaledHulls::score_error(std::size_t row) const {
  // Entries and products round by u, the partial sums by (width/8 + 3) u; as much again for a rounded
  // direction.
  return (static_cast<double>(center_.size()) / 8.0 + 16.0) * 0x1p-53 * lengths_[row];
}

std::vector<DoubleDouble> ScaledHulls::given(const Exact& direction) const {
  int least = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < scales_.size(); ++i) {
    if (direction[static_cast<Eigen::Index>(i)].high != 0.0) least = std::min(least, scales_[i].exponent());
  }
  std::vector<DoubleDouble> result(scales_.size());
  for (std::size_t i = 0; i < scales_.size(); ++i) {
    const DoubleDouble& value = direction[static_cast<Eigen::Index>(i)];
    if (value.high == 0.0) continue;
    const int power = least - scales_[i].exponent();
    result[i] = {std::scalbn(value.high, power), std::scalbn(value.low, power)};
  }
  return result;
}

}  // namespace normscope::convex
