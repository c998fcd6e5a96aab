#include "key_set.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/sum.hpp>

#include "extents.hpp"

namespace normscope::selectability {
namespace {

constexpr std::size_t grain = 256;
/// Below this distance from the mean, the power of two that scales the keys to 1 would overflow.
constexpr int least_exponent = -1000;

void validate(MatrixView<const double> keys) {
  if (keys.rows() > 0 && keys.width() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("select: {} keys of width 0, expected at least 1", keys.rows()));
  }
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    for (const double value : keys.row(row)) {
      if (!std::isfinite(value)) {
        throw Error(ErrorCode::Argument,
                    fmt::format("select: key {} has {}, expected finite numbers", row, value));
      }
    }
  }
}

}  // namespace

KeySet::KeySet(MatrixView<const double> keys, unsigned threads) : keys_(keys), center_(keys.width()) {
  validate(keys);
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
  extents_ = extents_of(keys, center_);
  scale_ = largest_size(extents_);
  exponent_ = scale_ > 0.0 ? std::max(std::ilogb(scale_), least_exponent) : 0;

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

void KeySet::centred(std::size_t place, std::span<double> z) const {
  const std::span<const double> key = keys_.row(rows_[place]);
  const double factor = std::scalbn(1.0, -exponent_);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = (key[i] - center_[i]) * factor;
}

Bounded KeySet::lead(std::span<const double> query, std::size_t i, std::size_t j) const {
  const Bounded exact = difference_dot(query, keys_.row(rows_[i]), keys_.row(rows_[j]));
  return {std::scalbn(exact.value, -exponent_), std::scalbn(exact.error, -exponent_)};
}

double KeySet::product_error(double a, double b) const {
  // Each term passes width + 2 roundings of 2^-24; entries and terms below float32's range are off by 2^-126
  // times the other factor.
  const double terms = static_cast<double>(width());
  return (terms + 4.0) * 0x1p-24 * 1.01 * a * b + terms * (a + b + 1.0) * 0x1p-120;
}

}  // namespace normscope::selectability
