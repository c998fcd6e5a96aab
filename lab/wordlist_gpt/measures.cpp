#include "measures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace normscope::lab {
namespace {

constexpr std::size_t words_at_once = 512;

/// ln sum exp(scores)
double log_sum_exp(std::span<const float> scores) {
  const double peak = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (const float score : scores) sum += std::exp(score - peak);
  return peak + std::log(sum);
}

}  // namespace

double model_loss(Network& network, std::span<const float> values, std::span<const std::string> words) {
  double loss = 0.0;
  std::size_t counted = 0;
  for (std::size_t first = 0; first < words.size(); first += words_at_once) {
    const Batch batch = one_word_a_row(words.subspan(first, std::min(words_at_once, words.size() - first)));
    const std::vector<float> logits = network.logits(values, batch);
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      if (batch.targets[i] == uncounted) continue;
      const std::span scores(logits.data() + i * alphabet.size(), alphabet.size());
      loss += log_sum_exp(scores) - scores[static_cast<std::size_t>(batch.targets[i])];
      ++counted;
    }
  }
  return loss / static_cast<double>(counted);
}

double count_loss(std::span<const std::string> training, std::span<const std::string> words,
                  std::size_t order) {
  std::map<std::string, std::array<double, alphabet.size()>> counts;
  const auto for_each_character = [order](std::span<const std::string> list, const auto& visit) {
    for (const std::string& word : list) {
      const std::string text = std::string(order, '\n') + word + '\n';
      for (std::size_t i = order; i < text.size(); ++i) {
        visit(text.substr(i - order, order), static_cast<std::size_t>(*token(text[i])));
      }
    }
  };
  for_each_character(training, [&](const std::string& before, std::size_t next) { ++counts[before][next]; });
  double loss = 0.0;
  std::size_t counted = 0;
  for_each_character(words, [&](const std::string& before, std::size_t next) {
    double total = alphabet.size();
    for (const double count : counts[before]) total += count;
    loss += std::log(total / (counts[before][next] + 1.0));
    ++counted;
  });
  return loss / static_cast<double>(counted);
}

std::string sample_word(Network& network, const Recipe& recipe, std::span<const float> values,
                        const std::string& prefix, double temperature, Random& random) {
  std::string word = prefix;
  while (word.size() + 1 < recipe.context) {
    const Batch batch = one_word_a_row({&word, 1});
    const std::vector<float> logits = network.logits(values, batch);
    std::vector<float> scores(logits.end() - alphabet.size(), logits.end());
    std::size_t next = std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (temperature > 0.0) {
      for (float& score : scores) score /= static_cast<float>(temperature);
      const double total = log_sum_exp(scores);
      double left = random.uniform();
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const double probability = std::exp(scores[i] - total);
        if (left < probability) {
          next = i;
          break;
        }
        left -= probability;
      }
    }
    if (next == separator) break;
    word += alphabet[next];
  }
  return word;
}

}  // namespace normscope::lab
