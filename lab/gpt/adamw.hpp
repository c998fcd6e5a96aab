#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "recipe.hpp"

namespace normscope::lab {

/// Averages that AdamW keeps for every parameter.
struct Moments {
  std::vector<float> first;
  std::vector<float> second;
};

/// Scales `gradient` to norm `limit` if it is longer; returns its norm before.
double clip(std::span<float> gradient, double limit);

/// Moves `values` by step number `step` (from 0) of AdamW at the recipe's learning rate:
///   m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g²
///   w ← w − rate · (m / (1 − β₁ᵗ) / (sqrt(v / (1 − β₂ᵗ)) + ε) + decay · w), t = step + 1
/// with decay = 0 for tensors that do not decay.
///
/// Source    [Loshchilov, Hutter 2019, Decoupled weight decay regularization, algorithm 2]
///
/// Shapes    values, gradient, both moments (total count of `tensors`)
void adamw_step(const Recipe& recipe, const std::vector<Parameter>& tensors, std::size_t step,
                std::span<const float> gradient, std::span<float> values, Moments& moments);

}  // namespace normscope::lab
