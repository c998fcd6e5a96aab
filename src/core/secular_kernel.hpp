#pragma once

#include <cstddef>
#include <span>

#include <normscope/core/linear_algebra.hpp>

namespace normscope::detail {

/// Σ w/(d−ζ) and its derivative Σ w/(d−ζ)² over some poles.
struct PoleSum {
  double value = 0.0;
  double slope = 0.0;
};

/// Terms of the far expansion: the truncation error of a pole at a distance of at least `far_ratio` radii is
/// below far_ratio^-expansion_terms of its term, a sixteenth of a rounding error.
inline constexpr std::size_t expansion_terms = 28;
inline constexpr double far_ratio = 4.0;

/// Σ weights / ((poles − origin) − offset), with one division per pole.
///
/// Accuracy  differences poles − origin are rounded once; the sum is within n u of its magnitude
PoleSum sum_poles(std::span<const double> poles, std::span<const double> weights, double origin,
                  double offset);

/// Adds to `coefficients` (expansion_terms) those of  Σ weights/(poles − ζ) = Σ_j c_j ((ζ −
/// center)/radius)^j.
///
/// Requires  |poles − center| >= far_ratio * radius
void expand_poles(std::span<const double> poles, std::span<const double> weights, double center,
                  double radius, double* coefficients);

}  // namespace normscope::detail
