#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/parallel.hpp>

#include "tokens.hpp"

namespace normscope::verify {

/// The claim that a token leads all others by at least `least`, in the units of the head, at its own
/// direction.
struct OwnLead {
  std::size_t token = 0;
  double least = 0.0;
};

/// What float32 leaves open of such a claim.
struct OpenRivals {
  std::vector<std::size_t> tokens{};  ///< over which it does not prove the lead, in order
  bool all = false;                   ///< whether every token is open: too many are, or there is no direction
};

/// For each claim, the tokens over which a product in float32 does not prove the lead. With B_j = Π (g ⊙ W_j)
/// less its mean, the own direction of token i is B_i over its length, so that its lead over j is
///   r B_i·(B_i − B_j)/|B_i| + b_i − b_j,  b_j = β·W_j + c_j,
/// and one product of each two tokens serves the claims of both.
///
/// Requires  a norm with eps > 0
///
/// Errors    Cancelled
///
/// Cost      tokens² width
[[nodiscard]] std::vector<OpenRivals> open_rivals(const Head& head, const std::vector<OwnLead>& claims,
                                                  unsigned threads, const Progress& progress);

}  // namespace normscope::verify
