#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <normscope/core/random.hpp>
#include <normscope/selectability/reach.hpp>

/// Language heads for tests.
namespace normscope::selectability {

struct Head {
  NormSpec norm{};
  std::vector<double> weights{};
  std::vector<double> bias{};

  [[nodiscard]] std::size_t tokens() const { return weights.size() / norm.width; }
  [[nodiscard]] Logits logits() const { return fold(norm, {weights.data(), tokens(), norm.width}, bias); }
};

inline std::vector<double> normals(std::size_t count, std::uint64_t seed, double size = 1.0) {
  Random random(seed);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(size * random.normal());
  return values;
}

inline Head random_head(std::size_t tokens, std::size_t width, NormKind kind, std::uint64_t seed,
                        double bias) {
  Head head;
  head.norm = {.kind = kind, .width = width};
  head.norm.gain = normals(width, seed + 1);
  head.norm.bias = normals(width, seed + 2, bias);
  head.weights = normals(tokens * width, seed);
  if (bias > 0.0) head.bias = normals(tokens, seed + 3, bias);
  return head;
}

inline std::vector<TokenReach> decided(const Logits& logits, unsigned threads = 1) {
  std::vector<TokenReach> tokens;
  decide(logits, tokens, {.threads = threads});
  return tokens;
}

inline std::vector<std::size_t> all_unproved(const Logits& logits, const std::vector<TokenReach>& tokens) {
  std::vector<std::size_t> all(tokens.size());
  std::iota(all.begin(), all.end(), 0);
  return unproved(logits, tokens, all, {.threads = 1});
}

/// Replaces row `token` by a mean of some others, with weights that sum to 1.
inline void plant(Head& head, std::size_t token, const std::vector<std::size_t>& carriers, Random& random) {
  const std::size_t width = head.norm.width;
  std::vector<double> shares;
  double total = 0.0;
  for (std::size_t k = 0; k < carriers.size(); ++k) total += shares.emplace_back(0.2 + random.uniform());
  for (std::size_t i = 0; i < width; ++i) {
    double value = 0.0;
    for (std::size_t k = 0; k < carriers.size(); ++k) {
      value += shares[k] / total * head.weights[carriers[k] * width + i];
    }
    head.weights[token * width + i] = value;
  }
}

}  // namespace normscope::selectability
