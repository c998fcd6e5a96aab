#include "key_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::selectability {
namespace {

constexpr std::size_t grain = 256;
/// Ratio between the extents of columns up to which one power of two divides all.
constexpr double alike = 0x1p10;

/// Powers of two that divide each column, from its extent.
std::vector<double> factors_of(const std::vector<double>& extents) {
  double least = std::numeric_limits<double>::infinity();
  for (const double extent : extents) {
    if (extent > 0.0) least = std::min(least, extent);
  }
  const double largest = largest_size(extents);
  std::vector<double> result;
  for (const double extent : extents) {
    const double size = largest > alike * least && extent > 0.0 ? extent : largest;
    result.push_back(size > 0.0 ? std::scalbn(1.0, -std::ilogb(size)) : 1.0);
  }
  return result;
}

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Rows folded into the triangle at a time.
constexpr std::size_t folded_rows = 1024;

/// R with RᵀR = Σ z zᵀ, computed without squaring.
MatrixXd triangle_of_keys(const KeySet& key_set) {
  const Index width = static_cast<Index>(key_set.width());
  MatrixXd result(0, width);
  std::vector<double> z(key_set.width());
  for (std::size_t first = 0; first < key_set.size(); first += folded_rows) {
    const Index count = static_cast<Index>(std::min(folded_rows, key_set.size() - first));
    MatrixXd rows(result.rows() + count, width);
    rows.topRows(result.rows()) = result;
    for (Index i = 0; i < count; ++i) {
      key_set.centred(first + static_cast<std::size_t>(i), z);
      rows.row(result.rows() + i) = Eigen::Map<const Eigen::RowVectorXd>(z.data(), width);
    }
    result = triangle_of(rows);
  }
  return result;
}

/// The rounding of the common mean, in the units of the key set, with a margin.
double mean_rounding(const KeySet& key_set) {
  double far = 0.0;
  for (std::size_t i = 0; i < key_set.width(); ++i) {
    const double extent = key_set.extents()[i];
    // The mean of a constant column is not rounded.
    if (extent > 0.0) far = std::max(far, key_set.scaled(std::abs(key_set.center()[i]) + extent, i));
  }
  return 0x1p-51 * far * std::sqrt(static_cast<double>(key_set.size()));
}

}  // namespace

KeySet::KeySet(MatrixView<const double> keys, unsigned threads) : keys_(keys), center_(keys.width()) {
  if (keys.rows() > 0 && keys.width() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("select: {} keys of width 0, expected at least 1", keys.rows()));
  }
  expect_accepted("select", {keys});
  duplicates_ = find_duplicates(keys);
  // The first of several equal keys represents them all.
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    if (duplicates_[row] == no_duplicate || duplicates_[row] > row) rows_.push_back(row);
  }
  const double count = static_cast<double>(size());
  parallel_for(width(), 8, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<CompensatedSum> totals(end - begin);
    for (const std::size_t row : rows_) {
      for (std::size_t i = begin; i < end; ++i) totals[i - begin].add(keys.row(row)[i] / count);
    }
    for (std::size_t i = begin; i < end; ++i) center_[i] = totals[i - begin].value();
  });
  // The mean of a constant column is that constant, so that its z is 0.
  for (std::size_t i = 0; i < width() && !rows_.empty(); ++i) {
    double low = infinity;
    double high = -infinity;
    for (const std::size_t row : rows_) {
      low = std::min(low, keys.row(row)[i]);
      high = std::max(high, keys.row(row)[i]);
    }
    center_[i] = std::clamp(center_[i], low, high);
  }
  extents_ = extents_of(keys, center_);
  scale_ = largest_size(extents_);
  factors_ = factors_of(extents_);

  std::vector<double> lengths(keys.rows());
  parallel_for(size(), grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<double> z(width());
    for (std::size_t place = begin; place < end; ++place) {
      centred(place, z);
      // Covers the rounding of the sum and of z itself.
      lengths[rows_[place]] = euclidean_norm(z) * (1.0 + 0x1p-48);
    }
  });
  std::sort(rows_.begin(), rows_.end(), [&](std::size_t a, std::size_t b) {
    return lengths[a] > lengths[b] || (lengths[a] == lengths[b] && a < b);
  });
  values_.resize(size() * width());
  lengths_.resize(size());
  parallel_for(size(), grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<double> z(width());
    for (std::size_t place = begin; place < end; ++place) {
      lengths_[place] = lengths[rows_[place]];
      centred(place, z);
      std::transform(z.begin(), z.end(), values_.begin() + static_cast<std::ptrdiff_t>(place * width()),
                     [](double value) { return static_cast<float>(value); });
    }
  });
}

std::optional<int> KeySet::exponent() const {
  const bool is_common = std::all_of(factors_.begin(), factors_.end(),
                                     [&](double factor) { return factor == factors_.front(); });
  if (!is_common) return std::nullopt;
  return -std::ilogb(factors_.front());
}

void KeySet::centred(std::size_t place, std::span<double> z) const {
  const std::span<const double> key = keys_.row(rows_[place]);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = scaled(key[i] - center_[i], i);
}

Bounded KeySet::lead(std::span<const double> query, std::size_t i, std::size_t j) const {
  ExactSum sum;
  const std::span<const double> a = keys_.row(rows_[i]);
  const std::span<const double> b = keys_.row(rows_[j]);
  for (std::size_t k = 0; k < a.size(); ++k) sum.add(two_sum(a[k], -b[k]), scaled(query[k], k));
  return sum.result();
}

double KeySet::product_error(double a, double b) const {
  // Each term passes width + 2 roundings of 2^-24; entries and terms below float32's range are off by 2^-126
  // times the other factor.
  const double terms = static_cast<double>(width());
  return (terms + 4.0) * 0x1p-24 * 1.01 * a * b + terms * (a + b + 1.0) * 0x1p-120;
}

Span::Span(const KeySet& key_set, double rank_tolerance) {
  const Index width = static_cast<Index>(key_set.width());
  const MatrixXd triangle = triangle_of_keys(key_set);
  const PivotedQr factors(triangle.transpose());
  const VectorXd pivots = factors.pivots();
  const double least = std::max(rank_tolerance * pivots.maxCoeff(), mean_rounding(key_set));
  rank_ = std::max<Index>(1, (pivots.array() > least).count());
  if (rank_ < width) basis_ = factors.basis(rank_);
  triangle_ = rank_ == width ? triangle : triangle_of(triangle * basis_);
  triangle_ /= std::sqrt(static_cast<double>(key_set.size()));
}

VectorXd Span::whitened(const VectorXd& vector) const {
  VectorXd result = basis_.size() == 0 ? vector : VectorXd(basis_.transpose() * vector);
  triangle_.transpose().triangularView<Eigen::Lower>().solveInPlace(result);
  return result;
}

VectorXd Span::query(const VectorXd& direction) const {
  const VectorXd result = triangle_.triangularView<Eigen::Upper>().solve(direction);
  return basis_.size() == 0 ? result : VectorXd(basis_ * result);
}

VectorXd Span::inside(const VectorXd& query) const {
  return basis_.size() == 0 ? query : VectorXd(basis_ * (basis_.transpose() * query));
}

}  // namespace normscope::selectability
