#include "cone.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/numeric/sum.hpp>

namespace normscope::selectability {

int offset_exponent(const Logits& logits) {
  double longest = 0.0;
  double highest = 0.0;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    longest = std::max(longest, euclidean_norm(logits.view().row(token)));
    highest = std::max(highest, std::abs(logits.offsets[token]));
  }
  return longest > 0.0 && highest > 0.0 ? std::ilogb(longest) - std::ilogb(highest) : 0;
}

Logits cone(const Logits& logits) {
  Logits result{.tokens = logits.tokens, .width = logits.width + 1};
  result.duplicates = logits.duplicates;
  const int exponent = offset_exponent(logits);
  result.rows.reserve(result.tokens * result.width);
  result.offsets.assign(logits.tokens, 0.0);
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const std::span<const double> row = logits.view().row(token);
    result.rows.insert(result.rows.end(), row.begin(), row.end());
    result.rows.push_back(std::scalbn(logits.offsets[token], exponent));
    const std::span<const double> longer = {result.rows.data() + token * result.width, result.width};
    const double length = euclidean_norm(longer);
    result.scale = std::max(result.scale, length);
    const double stretch = std::scalbn(1.0, std::max(0, exponent));
    const Logits::Own& own = logits.own[token];
    result.own.push_back(
        {std::min(length, stretch * own.size), stretch * own.rounding, stretch * own.rounding_error});
  }
  result.rounding = std::scalbn(logits.rounding, std::max(0, exponent));
  return result;
}

bool has_offsets(const Logits& logits) {
  return std::any_of(logits.offsets.begin(), logits.offsets.end(),
                     [&](double offset) { return offset != logits.offsets.front(); });
}

}  // namespace normscope::selectability
