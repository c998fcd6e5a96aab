#include "tagging.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::lab::counting {
namespace {

constexpr int near = 5;

/// Lengths of the first run of a's and of the following b's; both 0 for a word that begins with b.
struct Runs {
  std::size_t a = 0;
  std::size_t b = 0;
};

Runs first_runs(WordView word) {
  Runs runs;
  while (runs.a < word.size() && word[runs.a] == 0) ++runs.a;
  while (runs.a > 0 && runs.a + runs.b < word.size() && word[runs.a + runs.b] == 1) ++runs.b;
  return runs;
}

double near_balance_share(std::size_t length) {
  // Probabilities of #a − #b = d at [length + d].
  std::vector<double> chance(2 * length + 1, 0.0);
  chance[length] = 1.0;
  double sum = 0.0;
  for (std::size_t t = 1; t <= length; ++t) {
    std::vector<double> next(chance.size(), 0.0);
    for (std::size_t at = 1; at + 1 < chance.size(); ++at) {
      next[at - 1] += 0.5 * chance[at];
      next[at + 1] += 0.5 * chance[at];
    }
    chance = std::move(next);
    for (std::size_t at = 0; at < chance.size(); ++at) {
      if (std::abs(static_cast<int>(at) - static_cast<int>(length)) < near) sum += chance[at];
    }
  }
  return sum / static_cast<double>(length);
}

/// Number of letters after a^n b^n from which the label is 1, and the probability of that for a word that
/// continues uniformly at random.
struct Turn {
  std::size_t late;
  double chance;
};

double prefix_share(const Turn& turn, std::size_t length) {
  // Fraction of the letters from 2n + late on.
  const auto from = [&](std::size_t n) {
    const std::size_t begin = 2 * n + turn.late;
    return begin > length ? 0.0 : static_cast<double>(length - begin + 1) / static_cast<double>(length);
  };
  double even = 0.0;
  double begun = 0.0;
  for (std::size_t n = 1; 2 * n <= length; ++n) {
    even += std::ldexp(turn.chance * from(n), -static_cast<int>(2 * n));
    begun += turn.chance * from(n);
  }
  const std::size_t choices = length / 2 + 1;
  return 0.5 * even + 0.5 * (begun + even) / static_cast<double>(choices);
}

}  // namespace

std::string_view to_string(Tagging tagging) {
  constexpr std::string_view names[] = {"near_balance", "prefix", "prefix_as_coded"};
  return names[static_cast<std::size_t>(tagging)];
}

Tagging tagging(std::string_view name) {
  for (const Tagging value : {Tagging::near_balance, Tagging::prefix, Tagging::prefix_as_coded}) {
    if (to_string(value) == name) return value;
  }
  throw Error(ErrorCode::Argument,
              fmt::format("tagging \"{}\" is none of near_balance, prefix, prefix_as_coded", name));
}

Word draw(Tagging tagging, std::size_t length, Random& random) {
  Word word(length);
  for (std::uint8_t& letter : word) letter = static_cast<std::uint8_t>(random.below(2));
  if (tagging == Tagging::near_balance || random.below(2) == 0) return word;
  const std::size_t n = random.below(length / 2 + 1);
  for (std::size_t at = 0; at < 2 * n; ++at) word[at] = at < n ? 0 : 1;
  return word;
}

std::vector<std::uint8_t> labels(Tagging tagging, WordView word) {
  std::vector<std::uint8_t> labels(word.size(), 0);
  if (tagging == Tagging::near_balance) {
    int apart = 0;
    for (std::size_t at = 0; at < word.size(); ++at) {
      apart += word[at] == 0 ? 1 : -1;
      labels[at] = std::abs(apart) < near ? 1 : 0;
    }
    return labels;
  }
  const Runs runs = first_runs(word);
  const bool coded = tagging == Tagging::prefix_as_coded;
  if (runs.a == 0 || (coded ? runs.b != runs.a : runs.b < runs.a)) return labels;
  const auto begin = static_cast<std::ptrdiff_t>(2 * runs.a - (coded ? 0 : 1));
  std::fill(labels.begin() + begin, labels.end(), std::uint8_t{1});
  return labels;
}

double positive_share(Tagging tagging, std::size_t length) {
  if (tagging == Tagging::near_balance) return near_balance_share(length);
  return prefix_share(tagging == Tagging::prefix ? Turn{0, 1.0} : Turn{1, 0.5}, length);
}

double majority(Tagging tagging, std::size_t length) {
  const double yes = positive_share(tagging, length);
  return std::max(yes, 1.0 - yes);
}

}  // namespace normscope::lab::counting
