#include <normscope/selectability/logits.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/rounding.hpp>

#include "rows.hpp"

namespace normscope::selectability {
namespace {

void check(const NormSpec& norm, MatrixView<const double> unembedding, std::span<const double> bias) {
  validate(norm);
  require_normalizing("reach", norm);
  if (norm.groups != 1) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("reach: the norm has {} groups, expected one", norm.groups));
  }
  if (unembedding.rows() == 0 || unembedding.width() != norm.width) {
    throw Error(ErrorCode::Shape, fmt::format("reach: the unembedding is {} x {}, expected tokens x {}",
                                              unembedding.rows(), unembedding.width(), norm.width));
  }
  if (!bias.empty() && bias.size() != unembedding.rows()) {
    throw Error(ErrorCode::Shape, fmt::format("reach: {} biases for {} tokens, expected one per token",
                                              bias.size(), unembedding.rows()));
  }
  const std::size_t dimension = norm.centers() ? norm.width - 1 : norm.width;
  if (norm.eps == 0.0 && dimension < 2) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("reach: with eps = 0 a norm of width {} has {}, expected eps > 0 or a larger width",
                    norm.width, dimension == 0 ? "no output but 0/0" : "two outputs only"));
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

/// Mean of each column, for numbers of any size.
std::vector<double> column_means(MatrixView<const double> rows) {
  const double count = static_cast<double>(rows.rows());
  std::vector<CompensatedSum> sums(rows.width());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(rows.row(row)[i] / count);
  }
  std::vector<double> means;
  for (const CompensatedSum& sum : sums) means.push_back(sum.value());
  return means;
}

}  // namespace

std::vector<std::vector<std::size_t>> Logits::ties() const {
  std::map<std::size_t, std::vector<std::size_t>> groups;  // by their first token
  for (std::size_t i = 0; i < duplicates.size(); ++i) {
    if (duplicates[i] != no_duplicate) groups[std::min(i, duplicates[i])].push_back(i);
  }
  std::vector<std::vector<std::size_t>> result;
  for (auto& [first, group] : groups) result.push_back(std::move(group));
  return result;
}

Logits fold(const NormSpec& norm, MatrixView<const double> unembedding, std::span<const double> bias) {
  check(norm, unembedding, bias);
  Logits logits{.tokens = unembedding.rows(), .width = norm.width};
  logits.sphere = norm.eps == 0.0;
  logits.centers = norm.centers();
  logits.rows.resize(logits.tokens * logits.width);
  logits.offsets.resize(logits.tokens);
  // Centring precedes every product, so that rounding errors are relative to the differences between tokens.
  const std::vector<double> common = column_means(unembedding);
  const double common_bias = bias.empty() ? 0.0 : mean(bias);
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const std::span<const double> weights = unembedding.row(token);
    const std::span<double> row(logits.rows.data() + token * logits.width, logits.width);
    ExactSum offset;
    if (!bias.empty()) offset.add(two_sum(bias[token], -common_bias), 1.0);
    // The size of the token alone, before the common part is subtracted.
    std::vector<double> alone(row.size());
    double terms = bias.empty() ? 0.0 : std::abs(bias[token]);
    double shifted = 0.0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const DoubleDouble weight = two_sum(weights[i], -common[i]);
      row[i] = norm.radius() * (weight.high * norm.gain_at(i));
      alone[i] = norm.gain_at(i) * weights[i];
      terms += std::abs(norm.bias_at(i) * weights[i]);
      offset.add(weight, norm.bias_at(i));
      shifted += std::abs(weight.high * norm.bias_at(i));
    }
    logits.shifted = std::max(logits.shifted, shifted);
    // Radius, difference and two products of an entry, and two means subtracted from it: a few u each.
    const double error = 32.0 * unit_roundoff * euclidean_norm(row) + offset.result().error;
    logits.rounding = std::max(logits.rounding, error);
    terms += norm.radius() * euclidean_norm(alone);
    logits.terms = std::max(logits.terms, terms);
    if (norm.centers()) center(row);
    logits.offsets[token] = offset.result().value;
    const double size = euclidean_norm(row) + std::abs(logits.offsets[token]);
    if (!std::isfinite(size) || !std::isfinite(error)) logits.scale = infinity;
    logits.scale = std::max(logits.scale, size);
    logits.own.push_back({.size = std::min(size, terms),
                          .rounding = error,
                          .rounding_error = std::min(error, 32.0 * unit_roundoff * terms)});
  }
  expect_accepted_logits("reach", logits.scale);
  logits.duplicates = find_duplicates(unembedding, bias);
  if (std::all_of(logits.duplicates.begin(), logits.duplicates.end(),
                  [](std::size_t duplicate) { return duplicate == no_duplicate; })) {
    logits.duplicates.clear();
  }
  return logits;
}

}  // namespace normscope::selectability
