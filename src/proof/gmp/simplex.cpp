#include "simplex.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::proof::exact {
namespace {

/// Number of multiplications from which another thread pays off.
constexpr std::size_t price_grain = 500'000;

}  // namespace

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
