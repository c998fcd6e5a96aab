#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace normscope::rewrite {

/// An orthogonal matrix Q of a residual stream's features.
class Rotation {
 public:
  /// Random, from a seed: Q = (R ⊗ H) diag(s) for width = m 2^k with odd m, where H is the Hadamard matrix of
  /// 2^k features over its length, R a random orthogonal m × m matrix and s random signs; dense where the
  /// width is odd. With `keeps_ones`, a reflection behind it gives Q 1 = 1, so that Q commutes with LayerNorm
  /// too, which subtracts the mean.
  ///
  /// Source    [Ashkboos et al. 2024, QuaRot, randomized Hadamard matrices]
  static Rotation random(std::size_t width, std::uint64_t seed, bool keeps_ones);
  /// The nearest orthogonal matrix of a given one, row-major (width × width).
  ///
  /// Errors    Argument if it is not orthogonal to 1e-3
  static Rotation nearest(std::vector<double> matrix, std::size_t width);

  [[nodiscard]] std::size_t width() const { return width_; }
  /// Whether Q 1 is 1 or -1, to 1e-9: then Q commutes with the subtraction of the mean.
  [[nodiscard]] bool keeps_ones() const { return keeps_ones_; }
  /// |computed - Q x| is at most this times |x|.
  ///
  /// Accuracy  test: RewriteRotation.IsOrthogonalToItsBound
  [[nodiscard]] double error() const;

  /// Replaces every row x of `rows` (n × width) by Q x; the result for a row does not depend on other rows.
  void apply(std::span<double> rows, unsigned threads = 1) const;
  /// By Qᵀ x.
  void apply_transposed(std::span<double> rows, unsigned threads = 1) const;

  /// The numbers from which `from_numbers` makes the same rotation.
  [[nodiscard]] std::vector<double> numbers() const;
  /// Errors    Format for numbers that no rotation of that width has
  static Rotation from_numbers(std::span<const double> numbers, std::size_t width);

 private:
  explicit Rotation(std::size_t width) : width_(width) {}
  void factors(double* row, std::vector<double>& work, bool transposed) const;
  void reflect(double* row) const;
  void apply_all(std::span<double> rows, unsigned threads, bool transposed) const;

  std::size_t width_ = 0;
  std::size_t block_ = 1;             ///< 2^k
  std::vector<double> dense_{};       ///< R (m × m); empty for m = 1
  std::vector<double> signs_{};       ///< empty for a dense matrix alone
  std::vector<double> reflection_{};  ///< unit vector; empty without one
  bool keeps_ones_ = false;
};

}  // namespace normscope::rewrite
