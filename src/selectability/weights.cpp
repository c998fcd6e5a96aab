#include <normscope/selectability/select.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::selectability {

std::vector<double> attention_weights(MatrixView<const double> keys, std::span<const double> query) {
  if (keys.rows() == 0 || keys.width() != query.size()) {
    throw Error(ErrorCode::Shape, fmt::format("attention weights: {} keys of width {}, a query of {}; "
                                              "expected at least one key, of the query's width",
                                              keys.rows(), keys.width(), query.size()));
  }
  std::vector<double> weights(keys.rows());
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    for (std::size_t c = 0; c < query.size(); ++c) weights[i] += query[c] * keys.row(i)[c];
    if (!std::isfinite(weights[i])) {
      throw Error(ErrorCode::Argument,
                  fmt::format("attention weights: the score of key {} is {}, expected a finite number", i,
                              weights[i]));
    }
  }
  // The largest score is subtracted, so that no exponential overflows.
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0.0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace normscope::selectability
