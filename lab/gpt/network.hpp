#pragma once

#include <memory>
#include <span>
#include <vector>

#include "recipe.hpp"
#include "text.hpp"

namespace normscope::lab {

/// A Pre-LN GPT-2 without dropout, computed by torch. It owns no parameters: they come as one flat
/// vector in the order of `parameters(recipe)`. On one machine the same input gives the same bits
/// as long as the number of threads stays the same.
class Network {
 public:
  Network(const Recipe& recipe, int threads);
  ~Network();

  /// Mean negative log-likelihood of the counted targets in nats; its gradient goes to `gradient`.
  ///
  /// Shapes    values, gradient (total count of the parameters)
  ///
  /// Requires  batch.length <= context; at least one counted target
  double loss_and_gradient(std::span<const float> values, const Batch& batch, std::span<float> gradient);

  /// Scores of every token at every position.
  ///
  /// Shapes    result (rows × length × tokens)
  [[nodiscard]] std::vector<float> logits(std::span<const float> values, const Batch& batch);

 private:
  struct Torch;
  std::unique_ptr<Torch> torch_;
};

}  // namespace normscope::lab
