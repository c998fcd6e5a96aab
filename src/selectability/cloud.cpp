#include "cloud.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::selectability {
namespace {

constexpr std::size_t grain = 256;

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

Cloud::Cloud(MatrixView<const double> keys, unsigned threads) : keys_(keys), center_(keys.width()) {
  validate(keys);
  find_twins();
  const double count = static_cast<double>(size());
  parallel_for(width(), 8, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<CompensatedSum> totals(end - begin);
    for (const std::size_t row : rows_) {
      for (std::size_t i = begin; i < end; ++i) totals[i - begin].add(keys.row(row)[i] / count);
    }
    for (std::size_t i = begin; i < end; ++i) center_[i] = totals[i - begin].value();
  });
  for (const std::size_t row : rows_) {
    for (std::size_t i = 0; i < width(); ++i) {
      scale_ = std::max(scale_, std::abs(keys.row(row)[i] - center_[i]));
    }
  }
  if (!(scale_ <= 0x1p1000)) {
    throw Error(ErrorCode::Argument,
                fmt::format("select: keys {} from their mean, expected at most 2^1000", scale_));
  }
  exponent_ = scale_ > 0.0 ? std::max(std::ilogb(scale_), -1000) : 0;

  std::vector<double> lengths(keys.rows());
  parallel_for(size(), grain, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<double> z(width());
    for (std::size_t place = begin; place < end; ++place) {
      centred(place, z);
      // Enough to cover what the sum and z itself lost.
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

void Cloud::find_twins() {
  twins_.assign(keys_.rows(), none);
  std::vector<std::size_t> order(keys_.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto compare = [this](std::size_t a, std::size_t b) {
    const std::span<const double> x = keys_.row(a);
    const std::span<const double> y = keys_.row(b);
    const auto [first, second] = std::mismatch(x.begin(), x.end(), y.begin());
    return first == x.end() ? 0 : (*first < *second ? -1 : 1);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int sign = compare(a, b);
    return sign < 0 || (sign == 0 && a < b);
  });
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && compare(order[begin], order[end]) == 0) ++end;
    rows_.push_back(order[begin]);
    for (std::size_t i = begin; end - begin > 1 && i < end; ++i) {
      twins_[order[i]] = order[i == begin ? begin + 1 : begin];
    }
    begin = end;
  }
  std::sort(rows_.begin(), rows_.end());
}

void Cloud::centred(std::size_t place, std::span<double> z) const {
  const std::span<const double> key = keys_.row(rows_[place]);
  const double factor = std::scalbn(1.0, -exponent_);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = (key[i] - center_[i]) * factor;
}

Bounded Cloud::lead(std::span<const double> query, std::size_t i, std::size_t j) const {
  const Bounded exact = difference_dot(query, keys_.row(rows_[i]), keys_.row(rows_[j]));
  return {std::scalbn(exact.value, -exponent_), std::scalbn(exact.error, -exponent_)};
}

double Cloud::product_error(double a, double b) const {
  // width + 2 roundings of 2^-24 on the way of each term; entries and terms below float32's range are off by
  // 2^-126 of what they meet.
  const double terms = static_cast<double>(width());
  return (terms + 4.0) * 0x1p-24 * 1.01 * a * b + terms * (a + b + 1.0) * 0x1p-120;
}

}  // namespace normscope::selectability
