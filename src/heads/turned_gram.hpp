#pragma once

#include <cstddef>
#include <vector>

namespace normscope::heads {

/// Tests whether S − R_t G R_tᵀ − e_t e_tᵀ is positive definite at eight distances at once, with rotation
/// angles of the pairs (2j, 2j + 1) that differ between distances. The result is the same on every
/// instruction set: no product is fused, and lanes are independent.
class TurnedGramTest {
 public:
  static constexpr std::size_t lanes = 8;

  /// Shapes    gram (dim × dim), symmetric, row after row
  TurnedGramTest(std::size_t dim, const double* gram);

  /// S, symmetric (dim × dim).
  void set_shape(const double* shape);
  /// Cosine and sine of pair j at distance i; initially 1 and 0.
  void set_turn(std::size_t pair, std::size_t lane, double cosine, double sine) {
    cosines_[pair * lanes + lane] = cosine;
    sines_[pair * lanes + lane] = sine;
  }
  /// Entry of e at distance i; initially 0.
  void set_shift(std::size_t coordinate, std::size_t lane, double value) {
    shifts_[coordinate * lanes + lane] = value;
  }

  /// Bit i is set where a Cholesky factor of matrix i exists.
  ///
  /// Cost      dim³/6 multiplications and subtractions on vectors of eight
  [[nodiscard]] unsigned passes();

 private:
  std::size_t pairs_;         ///< pairs of coordinates, rounded up
  std::vector<double> gram_;  ///< of 2 pairs_ coordinates
  std::vector<double> shape_;
  std::vector<double> cosines_, sines_, shifts_;  ///< interleaved by lane
  std::vector<double> work_;                      ///< lower triangle, interleaved by lane
  std::size_t dim_;
};

}  // namespace normscope::heads
