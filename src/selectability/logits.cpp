#include <normscope/selectability/logits.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::selectability {
namespace {

void check(const NormSpec& norm, MatrixView<const double> unembedding, std::span<const double> bias) {
  validate(norm);
  if (norm.groups != 1) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("reach: the norm has {} groups, expected one", norm.groups));
  }
  if (unembedding.rows() == 0 || unembedding.width() != norm.width) {
    throw Error(ErrorCode::Shape, fmt::format("reach: the unembedding is {} x {}, expected tokens x {}",
                                              unembedding.rows(), unembedding.width(), norm.width));
  }
  if (!bias.empty() && bias.size() != unembedding.rows()) {
    throw Error(ErrorCode::Shape, fmt::format("reach: {} biases for {} tokens, expected one a token",
                                              bias.size(), unembedding.rows()));
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  for (std::size_t token = 0; token < unembedding.rows(); ++token) {
    const std::span<const double> row = unembedding.row(token);
    if (!std::all_of(row.begin(), row.end(), finite) || (!bias.empty() && !finite(bias[token]))) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("reach: token {} has a weight or bias that is not finite, expected numbers", token));
    }
  }
}

void take_mean_out(Logits& logits) {
  std::vector<CompensatedSum> sums(logits.width);
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    for (std::size_t i = 0; i < logits.width; ++i) sums[i].add(logits.rows[token * logits.width + i]);
  }
  const double count = static_cast<double>(logits.tokens);
  std::vector<double> middle(logits.width);
  std::transform(sums.begin(), sums.end(), middle.begin(),
                 [count](const CompensatedSum& s) { return s.value() / count; });
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    for (std::size_t i = 0; i < logits.width; ++i) logits.rows[token * logits.width + i] -= middle[i];
  }
  const double offset = mean(logits.offsets);
  for (double& value : logits.offsets) value -= offset;
}

}  // namespace

Logits fold(const NormSpec& norm, MatrixView<const double> unembedding, std::span<const double> bias) {
  check(norm, unembedding, bias);
  Logits logits{.tokens = unembedding.rows(), .width = norm.width};
  logits.rows.resize(logits.tokens * logits.width);
  logits.offsets.resize(logits.tokens);
  double largest = 0.0;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const std::span<const double> weights = unembedding.row(token);
    const std::span<double> row(logits.rows.data() + token * logits.width, logits.width);
    CompensatedSum offset;
    double terms = bias.empty() ? 0.0 : std::abs(bias[token]);
    if (!bias.empty()) offset.add(bias[token]);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = norm.radius() * (weights[i] * norm.gain_at(i));
      offset.add(weights[i] * norm.bias_at(i));
      terms += std::abs(weights[i] * norm.bias_at(i));
    }
    largest = std::max(largest, euclidean_norm(row) + terms);
    if (norm.centers()) center(row);
    logits.offsets[token] = offset.value();
  }
  take_mean_out(logits);
  // Radius, two products, two means taken out of the row and one out of the column, a few u each.
  logits.rounding = 32.0 * 0x1p-53 * largest;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    logits.scale =
        std::max(logits.scale, euclidean_norm(logits.view().row(token)) + std::abs(logits.offsets[token]));
  }
  if (!std::isfinite(logits.scale) || !std::isfinite(largest)) {
    throw Error(ErrorCode::Argument, "reach: the logits are not finite, expected weights and gains in range");
  }
  return logits;
}

}  // namespace normscope::selectability
