#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/proof/exact_separation.hpp>

#include "basis.hpp"
#include "hull_pair.hpp"

namespace normscope::proof::exact {

/// Phase 1 of the simplex method in rational arithmetic for Σλa = Σμb, Σλ = Σμ = 1, λ, μ >= 0. A basis
/// consists of rows of the sets and, if these do not span the space, artificial columns. The cost is the sum
/// of the magnitudes of all negative weights and all artificial values. Bland's rule is used while pivots do
/// not decrease it.
///
/// Source    [Dantzig 1963], [Bland 1977]
class Simplex {
 public:
  Simplex(const HullPair& hulls, const ExactLimits& limits, unsigned threads, const Progress& progress);

  /// Takes the row into the basis instead of an artificial column, unless it depends on those in it.
  void begin_with(std::size_t row);

  struct Outcome {
    std::vector<std::pair<std::size_t, mpz_class>> weights{};  ///< a common point: numerators by row
    mpz_class denominator{};
    std::optional<std::vector<Dyadic>> normal{};  ///< or the normal of a separating hyperplane
    std::string reason{};                         ///< or why neither was found
    std::size_t pivots = 0;
  };
  [[nodiscard]] Outcome solve();

 private:
  static constexpr std::size_t artificial = static_cast<std::size_t>(-1);

  /// Signs with which basic values count in the cost, and whether any counts.
  [[nodiscard]] std::vector<int> costs(const RationalVector& values, bool& feasible) const;
  [[nodiscard]] std::optional<std::size_t> entering(const Functional& functional, const Dyadic& of_a,
                                                    const Dyadic& of_b, bool least_index) const;
  [[nodiscard]] std::size_t leaving(const RationalVector& values, const RationalVector& direction) const;
  [[nodiscard]] std::string exceeded_limit(std::size_t pivots);
  [[nodiscard]] bool exchange(std::size_t position, std::size_t row);

  const HullPair& hulls_;
  const ExactLimits& limits_;
  unsigned threads_;
  const Progress& progress_;
  Basis basis_;
  std::vector<std::size_t> row_at_{};  ///< by position in the basis
  std::vector<bool> is_basic_{};       ///< by row
};

}  // namespace normscope::proof::exact
