#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/view.hpp>

#include "basis.hpp"

namespace normscope::proof::exact {

/// Two sets of rows, in the coordinates that vary; rows are numbered through both, those of A first.
class HullPair {
 public:
  HullPair(MatrixView<const double> a, MatrixView<const double> b, std::span<const std::size_t> left_out);

  [[nodiscard]] std::size_t rows() const { return a_.rows() + b_.rows(); }
  [[nodiscard]] std::size_t width() const { return a_.width(); }
  [[nodiscard]] bool is_of_a(std::size_t row) const { return row < a_.rows(); }
  [[nodiscard]] bool is_left_out(std::size_t row) const { return left_out_[row]; }
  [[nodiscard]] std::span<const double> row(std::size_t row) const {
    return is_of_a(row) ? a_.row(row) : b_.row(row - a_.rows());
  }
  /// Coordinates in which some row differs from the first one.
  [[nodiscard]] const std::vector<std::size_t>& varying() const { return varying_; }
  /// Column of the linear program: the varying coordinates, negative for B, and to which set the row belongs.
  [[nodiscard]] Basis::Column column(std::size_t row) const;
  /// For each row of a system, a power of two of the size of its entries.
  [[nodiscard]] Basis::Column units() const;

 private:
  MatrixView<const double> a_;
  MatrixView<const double> b_;
  std::vector<bool> left_out_{};
  std::vector<std::size_t> varying_{};
};

/// Σ w_i x_i over the varying coordinates of the rows x: exactly, or faster with a bound of the rounding
/// error.
class Functional {
 public:
  Functional(const HullPair& hulls, std::vector<Dyadic> weights);

  [[nodiscard]] const std::vector<Dyadic>& weights() const { return weights_; }
  [[nodiscard]] Dyadic exact(std::size_t row) const;
  /// exact(row) − exact(0), in units of 2^`unit_`.
  [[nodiscard]] Bounded difference(std::size_t row) const;
  /// A value in the same units.
  [[nodiscard]] Bounded in_units(const Dyadic& value) const;
  [[nodiscard]] const Dyadic& at_first() const { return at_first_; }

 private:
  const HullPair& hulls_;
  std::vector<Dyadic> weights_;
  long unit_ = 0;                  ///< exponent of a power of two above all weights
  std::vector<double> rounded_{};  ///< weights in units of 2^`unit_`; empty if they exceed a double's range
  Dyadic at_first_{};
};

/// The minimum of `functional` over A minus its maximum over B, exactly.
[[nodiscard]] Dyadic gap(const HullPair& hulls, const Functional& functional, unsigned threads);

}  // namespace normscope::proof::exact
