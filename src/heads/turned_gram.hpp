#pragma once

#include <cstddef>
#include <vector>

namespace normscope::heads {

/// Tests whether S − R_t G R_tᵀ − e_t e_tᵀ is positive definite at several distances at once, with rotation
/// angles of the pairs (2j, 2j + 1) that differ between distances. The result is the same on every
/// instruction set: no product is fused, and lanes are independent. T is float or double.
template <typename T>
class TurnedGramTest {
 public:
  static constexpr std::size_t lanes = 64 / sizeof(T);

  /// Shapes    gram (dim × dim), symmetric, row after row
  TurnedGramTest(std::size_t dim, const double* gram);

  /// S, symmetric (dim × dim).
  void set_shape(const double* shape);
  /// Cosine and sine of pair j at distance i; initially 1 and 0.
  void set_turn(std::size_t pair, std::size_t lane, double cosine, double sine) {
    cosines_[pair * lanes + lane] = static_cast<T>(cosine);
    sines_[pair * lanes + lane] = static_cast<T>(sine);
  }
  /// Entry of e at distance i; initially 0.
  void set_shift(std::size_t coordinate, std::size_t lane, double value) {
    shifts_[coordinate * lanes + lane] = static_cast<T>(value);
  }

  /// Bit i is set where a Cholesky factor of matrix i exists.
  ///
  /// Cost      dim³/6 multiplications and subtractions on vectors of 64 bytes
  [[nodiscard]] unsigned passes();

 private:
  std::size_t pairs_;    ///< pairs of coordinates, rounded up
  std::vector<T> gram_;  ///< of 2 pairs_ coordinates
  std::vector<T> shape_;
  std::vector<T> cosines_, sines_, shifts_;  ///< interleaved by lane
  std::vector<T> work_;                      ///< lower triangle, interleaved by lane
  std::size_t dim_;
};

}  // namespace normscope::heads
