#pragma once

#include <cstdint>
#include <vector>

#include "basis.hpp"

namespace normscope::convex::exact {

/// The vector of fractions of which the numbers Σ_k digits[k][i] prime^k are the residues modulo
/// prime^(count of digits), over a small common denominator; false where there is none.
///
/// Source    [Wang, Guy, Davenport 1982, P-adic reconstruction of rational numbers]
[[nodiscard]] bool reconstruct(const std::vector<Basis::Residues>& digits, std::uint32_t prime,
                               RationalVector& result);

}  // namespace normscope::convex::exact
