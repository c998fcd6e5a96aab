#include "column_units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

#include "weights.hpp"

namespace normscope::certificates {
namespace {

/// Ratio between columns, as a power of two, up to which products do not underflow.
constexpr int near = 200;

/// For each column, whether its entries differ.
std::vector<bool> varying_columns(MatrixView<const double> keys) {
  std::vector<bool> result(keys.width());
  for (std::size_t row = 1; row < keys.rows(); ++row) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = result[i] || keys.row(row)[i] != keys.row(0)[i];
    }
  }
  return result;
}

}  // namespace

std::vector<double> without_constants(MatrixView<const double> keys) {
  const std::vector<bool> varies = varying_columns(keys);
  std::vector<double> result;
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    for (std::size_t i = 0; i < keys.width(); ++i) result.push_back(varies[i] ? keys.row(row)[i] : 0.0);
  }
  return result;
}

ColumnUnits::ColumnUnits(MatrixView<const double> keys) : rows_(keys.rows()), exponents_(keys.width()) {
  int largest = std::numeric_limits<int>::min();
  int least = std::numeric_limits<int>::max();
  const std::vector<bool> varies = varying_columns(keys);
  for (std::size_t i = 0; i < keys.width(); ++i) {
    if (!varies[i]) continue;
    double size = 0.0;
    for (std::size_t row = 0; row < rows_; ++row) size = std::max(size, std::abs(keys.row(row)[i]));
    exponents_[i] = std::ilogb(size);
    largest = std::max(largest, exponents_[i]);
    least = std::min(least, exponents_[i]);
  }
  needed_ = largest > least && largest - least > near;
  if (!needed_) return;
  for (std::size_t row = 0; row < rows_; ++row) {
    for (std::size_t i = 0; i < keys.width(); ++i) {
      values_.push_back(varies[i] ? std::scalbn(keys.row(row)[i], -exponents_[i]) : 0.0);
    }
  }
}

LeadClaim ColumnUnits::claim(std::size_t index, std::vector<double> direction, double margin) const {
  BinaryScale::of(direction).divide(direction);
  const double length = euclidean_norm(direction);
  int largest = std::numeric_limits<int>::min();
  for (std::size_t i = 0; i < direction.size(); ++i) {
    if (direction[i] != 0.0) largest = std::max(largest, std::ilogb(direction[i]) + exponents_[i]);
  }
  const bool claims_one = length > 0.0 && margin > 0.0;
  for (std::size_t i = 0; claims_one && i < direction.size(); ++i) {
    direction[i] = std::scalbn(direction[i], exponents_[i] - largest);
  }
  const double least = claims_one ? std::scalbn(margin, -largest) * length * (1.0 - last_bits) : infinity;
  return {.index = index, .direction = std::move(direction), .least = least};
}

}  // namespace normscope::certificates
