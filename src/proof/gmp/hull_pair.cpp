#include "simplex.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::proof::exact {
namespace {

/// Number of multiplications from which another thread pays off.
constexpr std::size_t score_grain = 500'000;
/// Weights are rounded to doubles if all are this far from the ends of a double's range.
constexpr long safe_exponent = 900;

}  // namespace

HullPair::HullPair(MatrixView<const double> a, MatrixView<const double> b,
                   std::span<const std::size_t> left_out)
    : a_(a), b_(b), left_out_(a.rows() + b.rows()) {
  for (const std::size_t row : left_out) left_out_[a.rows() + row] = true;
  std::vector<std::size_t> constant(width());
  for (std::size_t i = 0; i < constant.size(); ++i) constant[i] = i;
  const std::span<const double> first = row(0);
  for (std::size_t r = 1; r < rows() && !constant.empty(); ++r) {
    if (is_left_out(r)) continue;
    const std::span<const double> values = row(r);
    const auto varies = [&](std::size_t i) { return values[i] != first[i]; };
    std::copy_if(constant.begin(), constant.end(), std::back_inserter(varying_), varies);
    constant.erase(std::remove_if(constant.begin(), constant.end(), varies), constant.end());
  }
  std::sort(varying_.begin(), varying_.end());
}

Basis::Column HullPair::column(std::size_t row) const {
  const std::span<const double> values = this->row(row);
  Basis::Column result;
  result.reserve(varying_.size() + 2);
  for (const std::size_t i : varying_) result.push_back(is_of_a(row) ? values[i] : -values[i]);
  result.push_back(is_of_a(row) ? 1.0 : 0.0);
  result.push_back(is_of_a(row) ? 0.0 : 1.0);
  return result;
}

Basis::Column HullPair::units() const {
  Basis::Column result(varying_.size() + 2, 0.0);
  for (std::size_t r = 0; r < rows(); ++r) {
    if (is_left_out(r)) continue;
    const std::span<const double> values = row(r);
    for (std::size_t i = 0; i < varying_.size(); ++i) {
      result[i] = std::max(result[i], std::abs(values[varying_[i]]));
    }
  }
  for (double& value : result) value = value > 0.0 ? std::scalbn(1.0, std::ilogb(value)) : 1.0;
  return result;
}

Functional::Functional(const HullPair& hulls, std::vector<Dyadic> weights)
    : hulls_(hulls), weights_(std::move(weights)) {
  unit_ = std::numeric_limits<long>::min();
  for (const Dyadic& weight : weights_) {
    if (weight.sign() != 0) unit_ = std::max(unit_, weight.size());
  }
  if (unit_ == std::numeric_limits<long>::min()) unit_ = 0;
  for (const Dyadic& weight : weights_) {
    if (weight.sign() != 0 && unit_ - weight.size() > safe_exponent) {
      rounded_.clear();
      break;
    }
    rounded_.push_back(weight.rounded(unit_));
  }
  at_first_ = exact(0);
}

Dyadic Functional::exact(std::size_t row) const {
  const std::span<const double> values = hulls_.row(row);
  long common = std::numeric_limits<long>::max();
  const std::vector<std::size_t>& varying = hulls_.varying();
  for (std::size_t i = 0; i < varying.size(); ++i) {
    if (weights_[i].sign() == 0 || values[varying[i]] == 0.0) continue;
    common = std::min(common, weights_[i].exponent + parts_of(values[varying[i]]).exponent);
  }
  Dyadic result;
  if (common == std::numeric_limits<long>::max()) return result;
  result.exponent = common;
  mpz_class term;
  for (std::size_t i = 0; i < varying.size(); ++i) {
    if (weights_[i].sign() == 0 || values[varying[i]] == 0.0) continue;
    const Parts parts = parts_of(values[varying[i]]);
    mpz_mul_si(term.get_mpz_t(), weights_[i].number.get_mpz_t(), static_cast<long>(parts.mantissa));
    term <<= static_cast<mp_bitcnt_t>(weights_[i].exponent + parts.exponent - common);
    result.number += term;
  }
  return result;
}

Bounded Functional::difference(std::size_t row) const {
  if (rounded_.empty()) return {0.0, infinity};
  const std::span<const double> x = hulls_.row(row);
  const std::span<const double> origin = hulls_.row(0);
  const std::vector<std::size_t>& varying = hulls_.varying();
  double total = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < varying.size(); ++i) {
    const double term = rounded_[i] * (x[varying[i]] - origin[varying[i]]);
    total += term;
    size += std::abs(term);
  }
  // Weights are truncated by less than 2u, differences and products round by u, a sum of n terms by nu.
  const double n = static_cast<double>(varying.size());
  const double error =
      2.0 * (n + 8.0) * 0x1p-53 * size + (n + 8.0) * std::numeric_limits<double>::denorm_min();
  return std::isfinite(error) ? Bounded{total, error} : Bounded{0.0, infinity};
}

Bounded Functional::in_units(const Dyadic& value) const {
  const double rounded = value.rounded(unit_);
  if (!std::isfinite(rounded)) return {0.0, std::numeric_limits<double>::infinity()};
  return {rounded, 0x1p-51 * std::abs(rounded) + std::numeric_limits<double>::denorm_min()};
}

Dyadic gap(const HullPair& hulls, const Functional& functional, unsigned threads) {
  std::vector<Bounded> differences(hulls.rows());
  parallel_for(hulls.rows(), 1 + score_grain / (1 + hulls.width()), threads,
               [&](std::size_t first, std::size_t last) {
                 for (std::size_t row = first; row < last; ++row)
                   differences[row] = functional.difference(row);
               });
  double least_of_a = std::numeric_limits<double>::infinity();
  double greatest_of_b = -std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < hulls.rows(); ++row) {
    if (hulls.is_left_out(row)) continue;
    if (hulls.is_of_a(row)) {
      least_of_a = std::min(least_of_a, differences[row].high());
    } else {
      greatest_of_b = std::max(greatest_of_b, differences[row].low());
    }
  }
  // Only rows that could be the least of A or the greatest of B within rounding.
  Dyadic least;
  Dyadic greatest;
  bool any_of_a = false;
  bool any_of_b = false;
  for (std::size_t row = 0; row < hulls.rows(); ++row) {
    if (hulls.is_left_out(row)) continue;
    if (hulls.is_of_a(row) && differences[row].low() <= least_of_a) {
      const Dyadic value = functional.exact(row);
      if (!any_of_a || value < least) least = value;
      any_of_a = true;
    } else if (!hulls.is_of_a(row) && differences[row].high() >= greatest_of_b) {
      const Dyadic value = functional.exact(row);
      if (!any_of_b || greatest < value) greatest = value;
      any_of_b = true;
    }
  }
  return least - greatest;
}

}  // namespace normscope::proof::exact
