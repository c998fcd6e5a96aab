#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::signature {

/// The logits of some tokens as offsets + A u, with their mean over these tokens subtracted, and the singular
/// value decomposition of A.
///
/// Shapes    left (count × rank), values (rank), offsets, sizes (count)
struct Basis {
  std::size_t count = 0;
  std::size_t rank = 0;
  std::vector<double> left{};
  std::vector<double> values{};
  std::vector<double> offsets{};
  std::vector<double> lengths{};  ///< of A's rows and offsets; the rounding of a logit is relative to these
};

/// The whole of A (tokens × width) with its offsets, from which bases of fewer tokens are computed.
class BasisMaker {
 public:
  /// Requires  both outlive this
  BasisMaker(MatrixView<const double> matrix, std::span<const double> offsets, unsigned threads)
      : matrix_(matrix), offsets_(offsets), threads_(threads) {}
  /// Of all tokens if `tokens` is empty.
  [[nodiscard]] Basis of(std::span<const std::size_t> tokens) const;

 private:
  MatrixView<const double> matrix_;
  std::span<const double> offsets_;
  unsigned threads_;
};

/// A row decomposed by a basis.
struct Fit {
  std::vector<double> difference{};  ///< logits − offsets, with mean 0
  std::vector<double> inside{};      ///< its coordinates along `left`
  std::vector<double> off{};         ///< its part outside the subspace
  double off_size = 0.0;
  double length = 0.0;  ///< |inside / values|
};

/// Several rows at once.
[[nodiscard]] std::vector<Fit> fit(const Basis& basis, std::span<const std::vector<double>* const> logits,
                                   unsigned threads);

/// w with Aᵀw = u/|u| for the fit's u: the direction of logits along which |u| changes.
[[nodiscard]] std::vector<double> measure_of_length(const Basis& basis, const Fit& fit);

/// The step to the row from the nearest point of the solid ellipsoid.
[[nodiscard]] std::vector<double> step_from_ellipsoid(const Basis& basis, const Fit& fit);

}  // namespace normscope::signature
