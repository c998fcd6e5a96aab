#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <normscope/core/random.hpp>

#include "network.hpp"

namespace normscope::lab {

/// Nats per character of `words`, each scored separately: the mean of −ln p over its letters and the newline
/// that ends it.
[[nodiscard]] double model_loss(Network& network, std::span<const float> values,
                                std::span<const std::string> words);

/// The same for counts of `training`: p(next | the `order` characters before it), one added to
/// every count. Order 0 is the unigram model, 1 the bigram model.
[[nodiscard]] double count_loss(std::span<const std::string> training, std::span<const std::string> words,
                                std::size_t order);

/// A word that begins with `prefix`: each next letter is drawn from p^(1/temperature), or is the
/// likeliest one where the temperature is 0. Ends at a newline or at the context's end.
[[nodiscard]] std::string sample_word(Network& network, const Recipe& recipe, std::span<const float> values,
                                      const std::string& prefix, double temperature, Random& random);

}  // namespace normscope::lab
