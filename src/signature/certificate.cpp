#include "certificate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <normscope/core/rounding.hpp>

namespace normscope::signature {

std::vector<double> balanced(std::span<const double> w) {
  std::vector<double> result(w.size(), 0.0);
  double largest = 0.0;
  for (const double value : w) largest = std::max(largest, std::abs(value));
  if (!(largest > 0.0) || !std::isfinite(largest)) return result;
  // Integers whose sum stays below 2^52.
  const int digits = 50 - (std::ilogb(static_cast<double>(w.size())) + 1);
  const int exponent = digits - 1 - std::ilogb(largest);
  std::int64_t sum = 0;
  std::vector<std::int64_t> whole;
  for (const double value : w) {
    whole.push_back(std::llrint(std::scalbn(value, exponent)));
    sum += whole.back();
  }
  // Each entry was rounded by at most one half, so changing entries by one corrects the sum, unless the sum
  // of w itself is not zero.
  for (std::size_t i = 0; sum != 0; i = (i + 1) % whole.size()) {
    const std::int64_t rest = static_cast<std::int64_t>(whole.size());
    const std::int64_t step = std::abs(sum) > rest ? sum / rest : (sum > 0 ? 1 : -1);
    whole[i] -= step;
    sum -= step;
  }
  for (std::size_t i = 0; i < w.size(); ++i)
    result[i] = std::scalbn(static_cast<double>(whole[i]), -exponent);
  return result;
}

double margin(const selectability::Logits& logits, const GivenRow& given, std::span<const double> w) {
  const std::size_t count = w.size();
  CompensatedSum lead;
  double terms = 0.0;
  double slack = 0.0;
  double lengths = 0.0;
  std::vector<double> gradient(logits.width, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (w[i] == 0.0) continue;
    const std::size_t token = given.tokens.empty() ? i : given.tokens[i];
    const std::span<const double> row = logits.view().row(token);
    const double offset = logits.offsets[token];
    lead.add(w[i] * given.logits[i]);
    lead.add(-w[i] * offset);
    terms += std::abs(w[i]) * (std::abs(given.logits[i]) + std::abs(offset));
    slack += std::abs(w[i]) * given.slack[i];
    lengths += std::abs(w[i]) * euclidean_norm(row);
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] += w[i] * row[j];
  }
  if (!(slack > 0.0)) return -1.0;
  const double rounds = rounding(static_cast<std::ptrdiff_t>(count));
  const double reach = euclidean_norm(gradient) * (1.0 + 16.0 * unit_roundoff) + rounds * lengths;
  const double bound = slack * (1.0 + rounds);
  const double gap = lead.value() - rounds * terms - reach - bound;
  return (gap - 8.0 * unit_roundoff * (std::abs(lead.value()) + reach + bound)) / bound *
         (gap > 0.0 ? 1.0 - 0x1p-50 : 1.0);
}

}  // namespace normscope::signature
