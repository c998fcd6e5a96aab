#include "simplex.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::proof::exact {
namespace {

/// Number of multiplications from which another thread pays off.
constexpr std::size_t score_grain = 500'000;
/// Weights are rounded to doubles if all are this far from the ends of a double's range.
constexpr long safe_exponent = 900;

/// The largest primes below 2^30.
constexpr std::array<std::uint32_t, 4> primes = {1073741789, 1073741783, 1073741741, 1073741723};
/// Exponents of a double's bits.
constexpr int least_exponent = -1074;
constexpr int most_exponent = 1023;
/// Number of multiplications from which another thread pays off.
constexpr std::size_t basis_grain = 200'000;

/// Number of multiplications from which another thread pays off.
constexpr std::size_t price_grain = 500'000;

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

Basis::Basis(const Column& diagonal, unsigned threads) : threads_(threads), modulus_(primes[0]) {
  const std::size_t n = diagonal.size();
  columns_.assign(n, Column(n, 0.0));
  inverse_.assign(n * n, 0);
  use_prime(primes[0]);
  for (std::size_t i = 0; i < n; ++i) {
    columns_[i][i] = diagonal[i];
    inverse_[i * n + i] = modulus_.inverse(residue(diagonal[i]));
  }
}

void Basis::use_prime(std::uint32_t prime) {
  modulus_ = Modulus(prime);
  powers_.assign(most_exponent - least_exponent + 1, modulus_.power(modulus_.inverse(2), -least_exponent));
  for (std::size_t i = 1; i < powers_.size(); ++i) powers_[i] = modulus_.multiply(powers_[i - 1], 2);
}

std::uint32_t Basis::power_of_two(int exponent) const {
  return powers_[static_cast<std::size_t>(exponent - least_exponent)];
}

std::uint32_t Basis::residue(double value) const {
  const Parts parts = parts_of(value);
  if (parts.mantissa == 0) return 0;
  const auto size = static_cast<std::uint64_t>(parts.mantissa < 0 ? -parts.mantissa : parts.mantissa);
  const std::uint32_t result = modulus_.multiply(modulus_.reduce(size), power_of_two(parts.exponent));
  return parts.mantissa < 0 ? modulus_.negative(result) : result;
}

Basis::Residues Basis::apply_inverse(const Residues& right) const {
  const std::size_t n = order();
  Residues result(n);
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): position is below n
  parallel_for(n, 1 + basis_grain / n, threads_, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const std::uint32_t* row = inverse_.data() + i * n;
      std::uint64_t total = 0;
      for (std::size_t j = 0; j < n;) {
        const std::size_t end = std::min(n, j + Modulus::products);
        for (; j < end; ++j) total += static_cast<std::uint64_t>(row[j]) * right[j];
        total = modulus_.reduce(total);
      }
      result[i] = static_cast<std::uint32_t>(total);
    }
  });
  return result;
}

Basis::Residues Basis::apply_transposed_inverse(const Residues& right) const {
  const std::size_t n = order();
  Residues result(n);
  parallel_for(n, 1 + basis_grain / n, threads_, [&](std::size_t first, std::size_t last) {
    std::vector<std::uint64_t> totals(last - first);
    for (std::size_t i = 0; i < n;) {
      const std::size_t end = std::min(n, i + Modulus::products);
      for (; i < end; ++i) {
        const std::uint32_t* row = inverse_.data() + i * n;
        const std::uint64_t factor = right[i];
        for (std::size_t j = first; j < last; ++j) totals[j - first] += factor * row[j];
      }
      for (std::uint64_t& total : totals) total = modulus_.reduce(total);
    }
    std::copy(totals.begin(), totals.end(), result.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return result;
}

Basis::Residues Basis::image(const Column& column) const {
  Residues residues(order());
  for (std::size_t i = 0; i < residues.size(); ++i) residues[i] = residue(column[i]);
  return apply_inverse(residues);
}

void Basis::replace(std::size_t position, Column column, const Residues& image) {
  NORMSCOPE_ASSERT(image[position] != 0);
  const std::size_t n = order();
  std::uint32_t* pivot_row = inverse_.data() + position * n;
  const std::uint32_t factor = modulus_.inverse(image[position]);
  for (std::size_t j = 0; j < n; ++j) pivot_row[j] = modulus_.multiply(pivot_row[j], factor);
  parallel_for(n, 1 + basis_grain / n, threads_, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      if (i == position || image[i] == 0) continue;
      const std::uint64_t negative = modulus_.negative(image[i]);
      std::uint32_t* row = inverse_.data() + i * n;
      for (std::size_t j = 0; j < n; ++j) row[j] = modulus_.reduce(row[j] + negative * pivot_row[j]);
    }
  });
  columns_[position] = std::move(column);
  integer_ = false;
}

bool Basis::replace_anew(std::size_t position, Column column) {
  columns_[position] = std::move(column);
  integer_ = false;
  for (const std::uint32_t prime : primes) {
    if (prime == modulus_.prime()) continue;
    use_prime(prime);
    if (invert_anew()) return true;
  }
  return false;
}

/// Computed from the identity by exchanging each of its columns; the rows of the inverse are then in the
/// order in which pivots were found.
bool Basis::invert_anew() {
  const std::size_t n = order();
  const std::vector<Column> columns = columns_;
  inverse_.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) inverse_[i * n + i] = 1;
  std::vector<std::size_t> place_of(n);
  std::vector<bool> taken(n);
  for (std::size_t column = 0; column < n; ++column) {
    const Residues residues = image(columns[column]);
    std::size_t place = 0;
    while (place < n && (taken[place] || residues[place] == 0)) ++place;
    if (place == n) return false;
    replace(place, columns[column], residues);
    taken[place] = true;
    place_of[column] = place;
  }
  columns_ = columns;
  const std::vector<std::uint32_t> found = inverse_;
  for (std::size_t column = 0; column < n; ++column) {
    std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(place_of[column] * n), n,
                inverse_.begin() + static_cast<std::ptrdiff_t>(column * n));
  }
  return true;
}

Simplex::Simplex(const HullPair& hulls, const ExactLimits& limits, unsigned threads, const Progress& progress)
    : hulls_(hulls),
      limits_(limits),
      threads_(threads),
      progress_(progress),
      basis_(hulls.units(), threads),
      row_at_(basis_.order(), artificial),
      is_basic_(hulls.rows()) {}

void Simplex::begin_with(std::size_t row) {
  if (is_basic_[row] || hulls_.is_left_out(row)) return;
  Basis::Column column = hulls_.column(row);
  const Basis::Residues image = basis_.image(column);
  for (std::size_t position = 0; position < row_at_.size(); ++position) {
    if (row_at_[position] != artificial || image[position] == 0) continue;
    basis_.replace(position, std::move(column), image);
    row_at_[position] = row;
    is_basic_[row] = true;
    return;
  }
}

Simplex::Outcome Simplex::solve() {
  Outcome outcome;
  const std::size_t coordinates = hulls_.varying().size();
  Basis::Column right(basis_.order(), 0.0);
  right[coordinates] = 1.0;
  right[coordinates + 1] = 1.0;
  bool stalled = false;
  for (;; ++outcome.pivots) {
    outcome.reason = exceeded_limit(outcome.pivots);
    if (!outcome.reason.empty()) return outcome;
    const RationalVector values = basis_.solve(right, progress_);
    bool feasible = true;
    const std::vector<int> cost = costs(values, feasible);
    if (feasible) {
      for (std::size_t i = 0; i < row_at_.size(); ++i) {
        if (values.numerators[i] > 0) outcome.weights.emplace_back(row_at_[i], values.numerators[i]);
      }
      outcome.denominator = values.denominator;
      return outcome;
    }
    // A row's price is the sum of its column with these factors; rows with a positive price decrease the
    // cost.
    const RationalVector multipliers = basis_.solve_transposed(cost, progress_);
    std::vector<Dyadic> prices;
    for (std::size_t i = 0; i < basis_.order(); ++i) {
      prices.emplace_back(multipliers.numerators[i], basis_.shift(i));
    }
    const Dyadic of_b = std::move(prices.back());
    prices.pop_back();
    const Dyadic of_a = std::move(prices.back());
    prices.pop_back();
    const Functional functional(hulls_, std::move(prices));
    const std::optional<std::size_t> row = entering(functional, of_a, of_b, stalled);
    if (!row) {
      outcome.normal.emplace();
      for (const Dyadic& weight : functional.weights()) outcome.normal->push_back(-weight);
      return outcome;
    }
    const RationalVector direction = basis_.solve(hulls_.column(*row), progress_);
    const std::size_t position = leaving(values, direction);
    stalled = values.numerators[position] == 0;
    if (!exchange(position, *row)) {
      outcome.reason = "a basis that is singular modulo every prime tried";
      return outcome;
    }
  }
}

std::vector<int> Simplex::costs(const RationalVector& values, bool& feasible) const {
  std::vector<int> result;
  for (std::size_t i = 0; i < row_at_.size(); ++i) {
    const int sign = sgn(values.numerators[i]);
    result.push_back(row_at_[i] == artificial ? sign : std::min(sign, 0));
    feasible = feasible && result.back() == 0;
  }
  return result;
}

/// A row whose price is positive: the one with the largest price in float64, or the first one.
std::optional<std::size_t> Simplex::entering(const Functional& functional, const Dyadic& of_a,
                                             const Dyadic& of_b, bool least_index) const {
  // Prices are functional(a) + of_a and of_b − functional(b).
  const Bounded base_a = functional.in_units(functional.at_first() + of_a);
  const Bounded base_b = functional.in_units(of_b - functional.at_first());
  std::vector<Bounded> prices(hulls_.rows());
  parallel_for(prices.size(), 1 + price_grain / (1 + hulls_.width()), threads_,
               [&](std::size_t first, std::size_t last) {
                 for (std::size_t row = first; row < last; ++row) {
                   if (is_basic_[row] || hulls_.is_left_out(row)) {
                     prices[row] = {-1.0, 0.0};
                     continue;
                   }
                   const Bounded difference = functional.difference(row);
                   const Bounded& base = hulls_.is_of_a(row) ? base_a : base_b;
                   const double sign = hulls_.is_of_a(row) ? 1.0 : -1.0;
                   const double price = base.value + sign * difference.value;
                   prices[row] = {price, (base.error + difference.error) * (1.0 + 0x1p-50) +
                                             0x1p-52 * (std::abs(base.value) + std::abs(difference.value))};
                 }
               });
  std::vector<std::size_t> order;
  for (std::size_t row = 0; row < prices.size(); ++row) {
    if (prices[row].high() > 0.0) order.push_back(row);
  }
  if (!least_index) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t i, std::size_t j) { return prices[i].value > prices[j].value; });
  }
  for (const std::size_t row : order) {
    if (prices[row].low() > 0.0) return row;
    const Dyadic exact = functional.exact(row);
    if ((hulls_.is_of_a(row) ? exact + of_a : of_b - exact).sign() > 0) return row;
  }
  return std::nullopt;
}

/// The ratio test: the first basic value that reaches zero. A feasible one must not pass zero; an infeasible
/// one becomes feasible there.
std::size_t Simplex::leaving(const RationalVector& values, const RationalVector& direction) const {
  std::size_t best = artificial;
  const auto before = [&](std::size_t i, std::size_t j) {
    const mpz_class left = abs(values.numerators[i]) * abs(direction.numerators[j]);
    const mpz_class right = abs(values.numerators[j]) * abs(direction.numerators[i]);
    if (left != right) return left < right;
    // Among ties, an artificial column, which never returns, is preferred; then the first row.
    if (row_at_[i] == artificial || row_at_[j] == artificial) return row_at_[j] != artificial;
    return row_at_[i] < row_at_[j];
  };
  for (std::size_t i = 0; i < row_at_.size(); ++i) {
    const int value = sgn(values.numerators[i]);
    const int slope = sgn(direction.numerators[i]);
    if (slope == 0) continue;
    const bool is_met =
        row_at_[i] == artificial ? value == 0 || value == slope : (value >= 0 ? slope > 0 : slope < 0);
    if (is_met && (best == artificial || before(i, best))) best = i;
  }
  NORMSCOPE_ASSERT(best != artificial);
  return best;
}

bool Simplex::exchange(std::size_t position, std::size_t row) {
  Basis::Column column = hulls_.column(row);
  const Basis::Residues image = basis_.image(column);
  if (row_at_[position] != artificial) is_basic_[row_at_[position]] = false;
  row_at_[position] = row;
  is_basic_[row] = true;
  if (image[position] == 0) return basis_.replace_anew(position, std::move(column));
  basis_.replace(position, std::move(column), image);
  return true;
}

std::string Simplex::exceeded_limit(std::size_t pivots) {
  if (pivots >= limits_.pivots) return fmt::format("no decision after {} pivots", pivots);
  if (basis_.bits() > limits_.bits) {
    return fmt::format("a linear system of order {} takes {} bits, more than {}", basis_.order(),
                       basis_.bits(), limits_.bits);
  }
  return {};
}

}  // namespace normscope::proof::exact
