#include <normscope/proof/separate.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "simplex.hpp"

namespace normscope::proof {
namespace {

using exact::Dyadic;
using exact::Functional;
using exact::HullPair;

void validate(MatrixView<const double> a, MatrixView<const double> b, std::span<const std::size_t> left_out) {
  if (a.rows() == 0 || b.rows() == 0 || a.width() == 0 || a.width() != b.width()) {
    throw Error(ErrorCode::Shape,
                fmt::format("exact separation: the sets are {} x {} and {} x {}, expected rows "
                            "of one width in both",
                            a.rows(), a.width(), b.rows(), b.width()));
  }
  std::vector<bool> out(b.rows());
  for (const std::size_t row : left_out) {
    if (row < b.rows()) out[row] = true;
  }
  if (std::any_of(left_out.begin(), left_out.end(), [&](std::size_t row) { return row >= b.rows(); }) ||
      std::find(out.begin(), out.end(), false) == out.end()) {
    throw Error(ErrorCode::Argument,
                "exact separation: rows of B left out that are not there, or all of them");
  }
  for (const MatrixView<const double>& set : {a, b}) {
    for (std::size_t row = 0; row < set.rows(); ++row) {
      for (const double value : set.row(row)) {
        if (!std::isfinite(value)) {
          throw Error(ErrorCode::Argument,
                      fmt::format("exact separation: row {} of {} has {}, expected finite "
                                  "numbers",
                                  row, set.data() == a.data() ? "A" : "B", value));
        }
      }
    }
  }
}

/// The leading `bits` of each number.
std::vector<Dyadic> shortened(const std::vector<Dyadic>& weights, long bits) {
  std::vector<Dyadic> result;
  for (const Dyadic& weight : weights) {
    const long size = static_cast<long>(mpz_sizeinbase(weight.number.get_mpz_t(), 2));
    if (size <= bits) {
      result.push_back(weight);
      continue;
    }
    mpz_class leading;
    mpz_tdiv_q_2exp(leading.get_mpz_t(), weight.number.get_mpz_t(), static_cast<mp_bitcnt_t>(size - bits));
    result.emplace_back(leading, weight.exponent + size - bits);
  }
  return result;
}

/// numerator / denominator, to two roundings.
double quotient(const mpz_class& numerator, const mpz_class& denominator) {
  long above = 0;
  long below = 0;
  const double n = mpz_get_d_2exp(&above, numerator.get_mpz_t());
  const double d = mpz_get_d_2exp(&below, denominator.get_mpz_t());
  // Beyond a double's exponents the result is 0 or infinite, whatever the difference.
  return std::ldexp(n / d, static_cast<int>(std::clamp(above - below, -4000L, 4000L)));
}

/// That direction in integers without a common divisor, and zero where coordinates do not vary.
std::vector<mpz_class> integers(const HullPair& hulls, const std::vector<Dyadic>& weights) {
  long common = 0;
  bool any = false;
  for (const Dyadic& weight : weights) {
    if (weight.sign() == 0) continue;
    common = any ? std::min(common, weight.exponent) : weight.exponent;
    any = true;
  }
  std::vector<mpz_class> numbers;
  mpz_class divisor = 0;
  for (const Dyadic& weight : weights) {
    numbers.push_back(weight.over(common));
    divisor = gcd(divisor, numbers.back());
  }
  std::vector<mpz_class> result(hulls.width());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != 0) result[hulls.varying()[i]] = numbers[i] / divisor;
  }
  return result;
}

bool separates(const HullPair& hulls, const std::vector<Dyadic>& normal, unsigned threads) {
  return exact::gap(hulls, Functional(hulls, normal), threads).sign() > 0;
}

/// The normal with as few digits as still separate the sets.
std::vector<mpz_class> short_normal(const HullPair& hulls, const std::vector<Dyadic>& normal,
                                    unsigned threads) {
  for (long bits = 53; bits < 4096; bits *= 2) {
    const std::vector<Dyadic> candidate = shortened(normal, bits);
    if (separates(hulls, candidate, threads)) return integers(hulls, candidate);
  }
  return integers(hulls, normal);
}

/// Writes the normal as text and as doubles.
void set_normal(ExactSeparation& result, const std::vector<mpz_class>& normal) {
  std::size_t digits = 0;
  for (const mpz_class& entry : normal) {
    result.normal.push_back(entry.get_str());
    digits = std::max(digits, result.normal.back().size() - (entry < 0 ? 1U : 0U));
  }
  mpz_class unit;
  mpz_ui_pow_ui(unit.get_mpz_t(), 10, digits);
  for (const mpz_class& entry : normal) result.direction.push_back(quotient(entry, unit));
}

/// Heavier rows first.
std::vector<std::size_t> by_weight(const ExactStart& start, std::size_t rows_of_a, std::size_t rows) {
  std::vector<PointWeight> shares = start.a;
  for (const PointWeight& share : start.b) shares.push_back({rows_of_a + share.id, share.weight});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const PointWeight& x, const PointWeight& y) { return x.weight > y.weight; });
  std::vector<std::size_t> result;
  for (const PointWeight& share : shares) {
    if (share.id < rows) result.push_back(share.id);
  }
  return result;
}

void set_weights(ExactSeparation& result, const exact::Simplex::Outcome& outcome, std::size_t rows_of_a) {
  mpz_class divisor = outcome.denominator;
  for (const auto& [row, numerator] : outcome.weights) divisor = gcd(divisor, numerator);
  result.denominator = mpz_class(outcome.denominator / divisor).get_str();
  for (const auto& [row, numerator] : outcome.weights) {
    const bool of_a = row < rows_of_a;
    (of_a ? result.a : result.b)
        .push_back({of_a ? row : row - rows_of_a, mpz_class(numerator / divisor).get_str(),
                    quotient(numerator, outcome.denominator)});
  }
  for (std::vector<ExactShare>* side : {&result.a, &result.b}) {
    std::sort(side->begin(), side->end(),
              [](const ExactShare& x, const ExactShare& y) { return x.row < y.row; });
  }
}

/// Σ numerator · row, and the sum of the numerators; false for invalid weights.
bool add_weighted(const std::vector<ExactShare>& shares, MatrixView<const double> rows,
                  const std::vector<bool>& left_out, int sign, std::vector<Dyadic>& point, mpz_class& total) {
  for (const ExactShare& share : shares) {
    mpz_class numerator;
    if (share.row >= rows.rows() || left_out[share.row]) return false;
    if (numerator.set_str(share.numerator, 10) != 0 || numerator <= 0) return false;
    total += numerator;
    for (std::size_t i = 0; i < point.size(); ++i) {
      point[i] += Dyadic(mpz_class(sign * numerator), 0) * Dyadic(rows.row(share.row)[i]);
    }
  }
  return true;
}

bool proves_common_point(MatrixView<const double> a, MatrixView<const double> b,
                         const ExactSeparation& separation, std::span<const std::size_t> left_out) {
  std::vector<bool> out_of_b(b.rows());
  for (const std::size_t row : left_out) out_of_b[row] = true;
  mpz_class denominator;
  if (denominator.set_str(separation.denominator, 10) != 0 || denominator <= 0) return false;
  std::vector<Dyadic> difference(a.width());
  mpz_class total_a;
  mpz_class total_b;
  if (!add_weighted(separation.a, a, std::vector<bool>(a.rows()), 1, difference, total_a)) return false;
  if (!add_weighted(separation.b, b, out_of_b, -1, difference, total_b)) return false;
  return total_a == denominator && total_b == denominator &&
         std::all_of(difference.begin(), difference.end(), [](const Dyadic& d) { return d.sign() == 0; });
}

}  // namespace

ExactSeparation separate_exactly(MatrixView<const double> a, MatrixView<const double> b,
                                 const ExactStart& start, std::span<const std::size_t> left_out,
                                 const ExactLimits& limits, unsigned threads, const Progress& progress) {
  validate(a, b, left_out);
  const HullPair hulls(a, b, left_out);
  ExactSeparation result;
  if (start.normal.size() == a.width()) {
    std::vector<Dyadic> normal;
    for (const std::size_t i : hulls.varying()) {
      const DoubleDouble& entry = start.normal[i];
      if (!std::isfinite(entry.high) || !std::isfinite(entry.low)) break;
      normal.push_back(Dyadic(entry.high) + Dyadic(entry.low));
    }
    if (normal.size() == hulls.varying().size() && separates(hulls, normal, threads)) {
      result.answer = Answer::yes;
      set_normal(result, short_normal(hulls, normal, threads));
      return result;
    }
  }
  const std::size_t order = hulls.varying().size() + 2;
  if (order > limits.order) {
    result.reason = fmt::format("a linear system of order {}, more than {}", order, limits.order);
    return result;
  }
  exact::Simplex simplex(hulls, limits, threads, progress);
  for (const std::size_t row : by_weight(start, a.rows(), hulls.rows())) simplex.begin_with(row);
  const exact::Simplex::Outcome outcome = simplex.solve();
  result.pivots = outcome.pivots;
  if (outcome.normal) {
    result.answer = Answer::yes;
    set_normal(result, short_normal(hulls, *outcome.normal, threads));
  } else if (!outcome.weights.empty()) {
    result.answer = Answer::no;
    set_weights(result, outcome, a.rows());
  } else {
    result.reason = outcome.reason;
  }
  return result;
}

void decide_exactly(MatrixView<const double> a, MatrixView<const double> b, Separation& separation,
                    const ExactLimits& limits, unsigned threads, const Progress& progress) {
  ExactStart start{.a = separation.a, .b = separation.b};
  for (const double value : separation.normal) start.normal.emplace_back(value);
  separation.exact = separate_exactly(a, b, start, {}, limits, threads, progress);
  if (separation.exact->answer != Answer::undecided) separation.answer = separation.exact->answer;
}

bool verify(MatrixView<const double> a, MatrixView<const double> b, const ExactSeparation& separation,
            std::span<const std::size_t> left_out) {
  validate(a, b, left_out);
  if (separation.answer == Answer::no) return proves_common_point(a, b, separation, left_out);
  if (separation.answer != Answer::yes || separation.normal.size() != a.width()) return false;
  const HullPair hulls(a, b, left_out);
  std::vector<Dyadic> normal;
  for (const std::size_t i : hulls.varying()) {
    mpz_class number;
    if (number.set_str(separation.normal[i], 10) != 0) return false;
    normal.emplace_back(number, 0);
  }
  return separates(hulls, normal, 1);
}

bool has_exact_separation() { return true; }

}  // namespace normscope::proof
