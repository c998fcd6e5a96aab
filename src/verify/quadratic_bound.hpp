#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <normscope/models/model.hpp>

#include "document.hpp"

namespace normscope::verify {

/// An activation function.
[[nodiscard]] double activate(models::Activation activation, double x);

/// Numbers c_j + p_j·u, |u| <= 1: what rows of a map read behind a norm with one divisor.
struct Reads {
  std::size_t width = 0;
  std::vector<double> rows{}, centres{};  ///< p_j (count, width), c_j
};

/// An upper bound of Σ_j a_j φ(z_j), or of Σ_j a_j x_j φ(z_j) if there are any x, and the sizes of its terms.
struct ProvedBound {
  double value = 0.0, size = 0.0;
};

/// What `proof` proves, slopes, curvatures, balances and a multiplier; none if its matrix is not positive
/// semidefinite.
///
/// Errors    Format for a proof of another form
[[nodiscard]] std::optional<ProvedBound> quadratic_bound(models::Activation activation,
                                                         const std::vector<double>& a, const Reads& z,
                                                         const Reads& x, const Field& proof);

}  // namespace normscope::verify
