#pragma once

#include <cmath>

#include "head_scores.hpp"
#include "weights.hpp"

namespace normscope::certificates {

/// Spreads after a soft cap, where `largest` bounds all scores.
class Cap {
 public:
  Cap(double cap, const HeadScores& scores)
      : cap_(cap), largest_(up(scores.query.size() * scores.key.size())) {}

  [[nodiscard]] double score(double value) const { return cap_ * std::tanh(value / cap_); }
  [[nodiscard]] double upper(double spread) const {
    return cap_ > 0.0 && std::isfinite(spread) ? 2.0 * score(0.5 * spread) : spread;
  }
  [[nodiscard]] double lower(double spread) const {
    if (!(cap_ > 0.0) || !(spread > 0.0)) return spread;
    // The library's hyperbolic tangent is off by a few u.
    return score(largest_) - score(largest_ - spread) - 8.0 * unit * cap_;
  }

 private:
  double cap_;
  double largest_;
};

}  // namespace normscope::certificates
