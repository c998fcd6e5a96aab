#include "tokens.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::verify {
namespace {

/// The length of a vector with entries of sizes near 1.
Enclosure precise_length(const std::vector<Enclosure>& vector) {
  EnclosureSum square;
  for (const Enclosure& entry : vector) square.add(entry * entry);
  const auto [value, error] = square.result();
  const DoubleDouble root = sqrt(value);
  // The root of x + e differs by at most e over the root of x.
  return {root, value.high > 2.0 * error ? 2.0 * error / root.high + fine * root.high : infinity};
}

}  // namespace

Head::Head(const VocabularyHead& head) : norm_(head.norm), factor_(head.scale), soft_cap_(head.soft_cap) {
  validate(norm_);
  require_normalizing("verify", norm_);
  if (norm_.groups != 1) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("verify: the norm has {} groups, expected one", norm_.groups));
  }
  const std::size_t count = head.unembedding.rows();
  if (count == 0 || head.unembedding.width() != norm_.width ||
      (!head.bias.empty() && head.bias.size() != count)) {
    throw Error(ErrorCode::Shape, "verify: unembedding, bias and norm do not fit together");
  }
  BinaryScale of_weights = BinaryScale::of(head.unembedding);
  BinaryScale of_norm = BinaryScale::of(std::max(largest_size(norm_.gain), largest_size(norm_.bias)));
  if (of_weights.is_safe() && of_norm.is_safe()) {
    of_weights = of_norm = {};
  } else {
    if (norm_.gain.empty()) norm_.gain.assign(norm_.width, 1.0);
    of_norm.divide(norm_.gain);
    of_norm.divide(norm_.bias);
  }
  scale_ = BinaryScale::of_exponent(of_weights.exponent() + of_norm.exponent());
  const std::size_t width = norm_.width + 1;
  values_.reserve(count * width);
  std::vector<CompensatedSum> sums(width);
  for (std::size_t row = 0; row < count; ++row) {
    for (const double value : head.unembedding.row(row)) {
      values_.push_back(of_weights.divide(value));
    }
    values_.push_back(head.bias.empty() ? 0.0 : scale_.divide(head.bias[row]));
    for (std::size_t i = 0; i < width; ++i) sums[i].add(values_[row * width + i]);
  }
  for (const CompensatedSum& sum : sums) mean_.push_back(sum.value() / static_cast<double>(count));
  rows_ = {values_.data(), count, width};
}

Head::Hidden Head::hidden(std::span<const double> u, double height, bool onto_sphere) const {
  std::vector<Enclosure> turned;
  // The length of a point on the sphere does not matter.
  const BinaryScale scale = onto_sphere ? BinaryScale::of(u) : BinaryScale();
  for (const double value : u) turned.push_back({DoubleDouble(scale.divide(value))});
  if (norm_.centers()) {
    const Enclosure middle = mean_of(turned);
    for (Enclosure& value : turned) value = value - middle;
  }
  Enclosure radius{sqrt(DoubleDouble(norm_.squared_radius()))};
  radius.error = fine * radius.value.high;
  if (onto_sphere) radius = radius / precise_length(turned);
  Hidden result;
  const auto add = [&result](const Enclosure& value) {
    result.values.push_back(value.value.high);
    result.rests.push_back(value.value.low);
    result.errors.push_back(up(value.error));
  };
  for (std::size_t i = 0; i < turned.size(); ++i) {
    EnclosureSum sum;
    sum.add(radius * norm_.gain_at(i) * turned[i]);
    sum.add(DoubleDouble(height), norm_.bias_at(i));
    add(sum.result());
  }
  add({DoubleDouble(height)});
  return result;
}

LeadClaim Head::claim_at(Hidden at, std::size_t index, double least) {
  return {.index = index,
          .direction = std::move(at.values),
          .rest = std::move(at.rests),
          .error = std::move(at.errors),
          .least = least};
}

LeadClaim Head::claim(std::size_t index, std::span<const double> u, double least) const {
  return claim_at(hidden(u, 1.0, sphere()), index, least);
}

LeadClaim Head::far_claim(std::size_t index, std::span<const double> u, double height, double least) const {
  return claim_at(hidden(u, height, false), index, least);
}

Head::ExactDifference Head::exact_difference(std::size_t index, const std::vector<Weight>& weights) const {
  const Exact total = exact_total(weights);
  std::vector<Exact> sums = exact_sum(rows_, weights);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = total * Exact(rows_.row(index)[i]) - sums[i];
  ExactDifference result{.offset = sums.back()};
  Exact sum;
  for (std::size_t i = 0; i < norm_.width; ++i) {
    result.offset += sums[i] * Exact(norm_.bias_at(i));
    result.turned.push_back(sums[i] * Exact(norm_.gain_at(i)));
    sum += result.turned.back();
  }
  if (norm_.centers()) {
    const Exact width = static_cast<double>(norm_.width);
    for (Exact& entry : result.turned) entry = width * entry - sum;
  }
  return result;
}

bool Head::leads_by(std::size_t index, std::size_t other, std::span<const double> u, double height,
                    Where where, double least) const {
  if (!scale_.is_one() || !std::isfinite(least) || !std::isfinite(height) ||
      !std::isfinite(largest_size(u))) {
    return false;
  }
  const ExactDifference difference = exact_difference(index, {{other, 1.0}});
  // With p = Πu: lead = f (r X/|p| + Y) on the sphere, f (r X + Y) in the ball, X = Σ turned u / N.
  Exact x;
  Exact sum;
  for (std::size_t i = 0; i < u.size(); ++i) {
    x += difference.turned[i] * Exact(u[i]);
    sum += u[i];
  }
  const Exact width = norm_.centers() ? static_cast<double>(norm_.width) : 1.0;
  Exact divisor = width * width;
  if (where == Where::norm && sphere()) {
    // N² |Πu|² = N² |u|² − N (Σ u)², and X has the factor N already.
    divisor = divisor * exact_square(u);
    if (norm_.centers()) divisor -= width * sum * sum;
    if (divisor.sign() <= 0) return false;
  }
  const Exact rest = Exact(least) - Exact(factor_) * Exact(height) * difference.offset;
  x = x * Exact(factor_);
  if (rest.sign() <= 0 && x.sign() >= 0) return true;
  if (rest.sign() >= 0 && x.sign() <= 0) return false;
  const Exact left = Exact(norm_.squared_radius()) * x * x;
  const Exact right = divisor * rest * rest;
  return rest.sign() > 0 ? right <= left : left <= right;
}

bool Head::is_lead_at_most(std::size_t index, const std::vector<Weight>& weights, double most) const {
  if (!scale_.is_one()) return false;
  const ExactDifference difference = exact_difference(index, weights);
  const Exact rest = Exact(most) * exact_total(weights) - Exact(factor_) * difference.offset;
  const Exact width = norm_.centers() ? static_cast<double>(norm_.width) : 1.0;
  return rest.sign() >= 0 &&
         Exact(norm_.squared_radius()) * Exact(factor_) * Exact(factor_) * exact_square(difference.turned) <=
             width * width * rest * rest;
}

std::vector<double> Head::turned(std::size_t index) const {
  std::vector<double> result(norm_.width);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = norm_.gain_at(i) * (weights_of(index)[i] - mean_[i]);
  }
  if (norm_.centers()) center(result);
  return result;
}

Head::Turned Head::turned_sizes(std::size_t index) const {
  const std::span<const double> values = rows_.row(index);
  CompensatedSum shift;
  double square = 0.0;
  Turned sizes;
  shift.add(values.back() - mean_.back());
  sizes.offset = std::abs(values.back()) + std::abs(mean_.back());
  for (std::size_t i = 0; i < norm_.width; ++i) {
    const double size = std::abs(values[i]) + std::abs(mean_[i]);
    shift.add(norm_.bias_at(i) * (values[i] - mean_[i]));
    sizes.offset += std::abs(norm_.bias_at(i)) * size;
    square += norm_.gain_at(i) * norm_.gain_at(i) * size * size;
  }
  sizes.shift = shift.value();
  sizes.length = std::sqrt(square);
  return sizes;
}

std::vector<double> Head::own_direction(std::size_t index) const {
  std::vector<double> result = turned(index);
  const double length = euclidean_norm(result);
  for (double& value : result) value = length > 0.0 ? value / length * (1.0 - 0x1p-49) : 0.0;
  return result;
}

Head::Difference Head::difference(std::size_t index, const std::vector<Weight>& weights) const {
  const std::vector<Enclosure> sums = weighted_difference(rows_.row(index), rows_, weights);
  std::vector<Enclosure> turned;
  EnclosureSum offset;
  for (std::size_t i = 0; i < norm_.width; ++i) {
    turned.push_back(sums[i] * norm_.gain_at(i));
    offset.add(sums[i] * norm_.bias_at(i));
  }
  offset.add(sums.back());
  if (norm_.centers()) {
    const Enclosure middle = mean_of(turned);
    for (Enclosure& entry : turned) entry = entry - middle;
  }
  const double radius = norm_.radius() * (1.0 + 2.0 * unit);
  return {radius * length_at_most(turned) * (1.0 + 2.0 * unit), offset.result()};
}

Enclosure Head::difference_at(const Hidden& at, std::size_t index, std::size_t other) const {
  const std::span<const double> a = rows_.row(index);
  const std::span<const double> b = rows_.row(other);
  ExactSum sum;
  double off = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const DoubleDouble difference = two_sum(a[i], -b[i]);
    sum.add(difference, at.values[i]);
    sum.add(difference, at.rests[i]);
    off += at.errors[i] * std::abs(difference.high);
  }
  Enclosure result = Enclosure::of(sum.result());
  result.error += off * (1.0 + 2.0 * static_cast<double>(a.size() + 4) * unit);
  return result;
}

std::vector<Enclosure> Head::logits_from(std::size_t index, std::span<const double> u, Where where) const {
  const Hidden at = hidden(u, 1.0, where == Where::norm && sphere());
  std::vector<Enclosure> result;
  result.reserve(tokens());
  for (std::size_t row = 0; row < tokens(); ++row) result.push_back(difference_at(at, row, index));
  return result;
}

std::vector<Enclosure> Head::logits_at(std::span<const double> u) const {
  const Hidden at = hidden(u, 1.0, sphere());
  std::vector<Enclosure> result;
  result.reserve(tokens());
  for (std::size_t row = 0; row < tokens(); ++row) {
    const std::span<const double> values = rows_.row(row);
    ExactSum sum;
    double off = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum.add(DoubleDouble(values[i]), at.values[i]);
      sum.add(DoubleDouble(values[i]), at.rests[i]);
      off += at.errors[i] * std::abs(values[i]);
    }
    const auto logit = sum.result();
    const double error = off * (1.0 + 2.0 * static_cast<double>(values.size() + 4) * unit) + logit.error;
    const double value = from_units(logit.value);
    result.push_back({DoubleDouble(value), up(from_units(error)) + 2.0 * unit * std::abs(value)});
  }
  return result;
}

Head::Token Head::token(std::size_t index, bool less_mean) const {
  const std::span<const double> values = rows_.row(index);
  const auto entry = [&](std::size_t i) { return less_mean ? values[i] - mean_[i] : values[i]; };
  Token token;
  std::vector<double> turned(norm_.width);
  CompensatedSum offset;
  offset.add(entry(turned.size()));
  token.terms = std::abs(entry(turned.size()));
  for (std::size_t i = 0; i < turned.size(); ++i) {
    turned[i] = norm_.gain_at(i) * entry(i);
    offset.add(norm_.bias_at(i) * entry(i));
    token.terms += std::abs(norm_.bias_at(i) * entry(i));
  }
  token.terms += norm_.radius() * euclidean_norm(turned);
  if (norm_.centers()) center(turned);
  token.length = norm_.radius() * euclidean_norm(turned);
  token.height = std::abs(offset.value());
  return token;
}

Head::Sizes Head::sizes() const {
  Sizes sizes;
  for (std::size_t row = 0; row < tokens(); ++row) {
    const Token one = token(row, true);
    sizes.longest = std::max(sizes.longest, one.length);
    sizes.highest = std::max(sizes.highest, one.height);
    sizes.scale = std::max(sizes.scale, one.length + one.height);
    sizes.terms = std::max(sizes.terms, one.terms);
    sizes.stored = std::max(sizes.stored, token(row, false).terms);
  }
  return sizes;
}

Head::Own Head::own(std::size_t index) const {
  const Token centered = token(index, true);
  const double alone = token(index, false).terms;
  return {std::min(centered.length + centered.height, alone), std::min(centered.terms, alone)};
}

bool in_ball(std::span<const double> u) { return euclidean_norm(u) * (1.0 + 8.0 * unit) <= 1.0; }

Ends probability_from_leads(double lower, double upper, std::size_t tokens) {
  const double others = static_cast<double>(tokens) - 1.0;
  if (others == 0.0) return {1.0, 1.0};
  Ends result{0.0, 1.0};
  if (lower > 0.0) result.lower = (1.0 - 2.0 * elementary) / (1.0 + others * std::exp(-lower));
  result.upper = std::min(1.0, (1.0 + 2.0 * elementary) / (1.0 + std::exp(-upper)));
  return result;
}

double probability_at(const Head& head, std::size_t index, const std::vector<double>& u) {
  if (!in_ball(u)) return 0.0;
  // p = 1 / Σ exp(logit_j − logit_i)
  CompensatedSum sum;
  for (const Enclosure& logit : head.logits_from(index, u, Head::Where::norm))
    sum.add(std::exp(head.from_units(logit.high())));
  const double result = (1.0 - 2.0 * elementary) / sum.value();
  return std::isnan(result) ? 0.0 : result;
}

double capped_probability_at(const Head& head, std::size_t index, const std::vector<double>& u) {
  if (!in_ball(u)) return 0.0;
  const double cap = head.soft_cap();
  const auto capped = [cap](double logit) { return cap * std::tanh(logit / cap); };
  const std::vector<Enclosure> logits = head.logits_at(u);
  const double own = capped(logits[index].low());
  CompensatedSum sum;
  sum.add(1.0);
  for (std::size_t j = 0; j < logits.size(); ++j) {
    // tanh is increasing: the upper bounds of the other logits, the lower bound of the token's own, and the
    // rounding of both.
    if (j != index) sum.add(std::exp(capped(logits[j].high()) - own + 4.0 * elementary * cap));
  }
  const double result = (1.0 - 2.0 * elementary) / sum.value();
  return std::isnan(result) ? 0.0 : result;
}

double probability_by_weights(const Head& head, std::size_t index, const std::vector<Weight>& weights) {
  // Two weights of one token would count its entropy twice.
  std::vector<bool> weighted(head.tokens());
  CompensatedSum total;
  CompensatedSum entropy;  // −Σ w log w
  double size = 0.0;
  for (const Weight& weight : weights) {
    if (!(weight.weight > 0.0) || weighted[weight.index]) return 1.0;
    weighted[weight.index] = true;
    total.add(weight.weight);
    const double term = -weight.weight * std::log(weight.weight);
    entropy.add(term);
    size += weight.weight + std::abs(term);
  }
  const double sum = total.value();
  if (!(sum > 0.0) || !std::isfinite(sum)) return 1.0;
  const Head::Difference difference = head.difference(index, weights);
  const double length = head.from_units(difference.length);
  const double offset = head.from_units(difference.offset.high());
  // With p = w/S: H(p) = log S − (Σ w log w)/S.
  const double least_entropy = std::log(sum) + entropy.value() / sum - 4.0 * elementary * (1.0 + size / sum);
  const double bound =
      (length + offset) / sum - least_entropy + 16.0 * unit * (length + std::abs(offset)) / sum;
  const double result = std::exp(bound) * (1.0 + elementary);
  return std::isnan(result) ? 1.0 : std::min(1.0, result);
}

double probability_by_tangent(const Head& head, std::size_t index, const std::vector<double>& u) {
  std::vector<double> logits;
  double highest = 0.0;
  for (const Enclosure& logit : head.logits_from(index, u, Head::Where::point)) {
    logits.push_back(head.from_units(logit.value.high));
    highest = std::max(highest, logits.back());
  }
  // The bound holds for any weights, so the rounding of these does not matter. A weight on the token itself
  // does not change the differences.
  std::vector<Weight> weights;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    const double weight = std::exp(logits[j] - highest);
    if (weight > 0.0) weights.push_back({j, weight});
  }
  return probability_by_weights(head, index, weights);
}

}  // namespace normscope::verify
