#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/theorems.hpp>

#include "frame/experiment.hpp"

// How many configurations a stack and saturated attention have after n letters.
namespace normscope::lab::merrill_spaces {
namespace {

namespace rnn = nets::rnn;

constexpr std::size_t letters = 3;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  return {{Json{{"machine", "stack"}, {"longest", quick ? 8 : 14}, {"heads", 1}},
           Json{{"machine", "attention"}, {"longest", quick ? 5 : 9}, {"heads", quick ? 10 : 200}}},
          1};
}

/// The reading Σ 2^(1−i) S_i of a stack onto which each letter is pushed as 1 or −1, times 2^length.
void stack(Run& run) {
  const auto longest = run.get<std::size_t>("longest");
  std::set<std::pair<std::int64_t, std::size_t>> readings;
  std::size_t length = 0;
  const auto note = [&] { run.measure("space", length, static_cast<double>(readings.size())); };
  for (rnn::Word word; word.size() <= longest; rnn::next_word(word, 2)) {
    if (word.size() > length) {
      note();
      length = word.size();
    }
    // The top is the last letter: numerator over 2^(length − 1).
    std::int64_t numerator = 0;
    for (std::size_t i = 0; i < word.size(); ++i)
      numerator += (word[i] == 0 ? 1 : -1) * (std::int64_t{1} << i);
    std::size_t power = word.size();
    while (power > 0 && numerator % 2 == 0) {
      numerator /= 2;
      --power;
    }
    readings.insert({numerator, power});
  }
  note();
}

/// The output of saturated causal attention at the last letter: the mean value of the letters whose key has
/// the largest product with the query, as numerators and a common denominator.
struct Head {
  std::int64_t score[letters][letters];  ///< of a query and a key
  std::int64_t value[letters][2];
};

std::vector<std::int64_t> output(const Head& head, rnn::WordView word) {
  const std::int64_t* score = head.score[word.back()];
  std::int64_t most = score[word.front()];
  for (const std::uint8_t letter : word) most = std::max(most, score[letter]);
  std::vector<std::int64_t> sum(3, 0);
  for (const std::uint8_t letter : word) {
    if (score[letter] != most) continue;
    sum[0] += head.value[letter][0];
    sum[1] += head.value[letter][1];
    ++sum[2];
  }
  const std::int64_t common = std::gcd(std::gcd(sum[0], sum[1]), sum[2]);
  for (std::int64_t& part : sum) part /= common;
  return sum;
}

void attention(Run& run) {
  Random random(run.seed());
  const auto longest = run.get<std::size_t>("longest");
  std::vector<std::size_t> most(longest + 1);
  std::vector<std::size_t> counts(longest + 1);
  for (std::size_t i = 0; i < run.get<std::size_t>("heads"); ++i) {
    Head head{};
    for (std::size_t query = 0; query < letters; ++query) {
      // Few values, so that keys are often equally good, as in the paper's construction; the first head's
      // are.
      for (std::size_t key = 0; key < letters; ++key)
        head.score[query][key] = i == 0 ? 0 : static_cast<std::int64_t>(random.below(2));
    }
    for (auto& value : head.value) {
      for (std::int64_t& entry : value) entry = static_cast<std::int64_t>(random.below(200)) - 100;
    }
    std::set<std::vector<std::int64_t>> seen;
    std::set<std::vector<std::size_t>> counted;
    std::size_t length = 1;
    for (rnn::Word word{0}; word.size() <= longest; rnn::next_word(word, letters)) {
      if (word.size() > length) {
        most[length] = std::max(most[length], seen.size());
        counts[length] = counted.size();
        length = word.size();
      }
      seen.insert(output(head, word));
      std::vector<std::size_t> letter_counts(letters);
      for (const std::uint8_t letter : word) ++letter_counts[letter];
      counted.insert(letter_counts);
    }
    most[length] = std::max(most[length], seen.size());
    counts[length] = counted.size();
  }
  for (std::size_t n = 1; n <= longest; ++n) {
    run.measure("space", n, static_cast<double>(most[n]));
    run.measure("counts", n, static_cast<double>(counts[n]));
  }
}

void perform(Run& run) {
  run.get<std::string>("machine") == "stack" ? stack(run) : attention(run);
  const auto longest = run.get<std::size_t>("longest");
  run.reached(longest, longest, [] { return Bytes{}; });
}

Finding of_stack(const Results& results) {
  const Results runs = results.where("machine", "stack");
  if (runs.runs().empty()) return {"not run"};
  const Done& run = runs.runs().front();
  const auto longest = run.configuration.at("longest").get<std::uint64_t>();
  bool holds = true;
  for (std::uint64_t n = 0; n <= longest; ++n)
    holds = holds && run.at("space", n) == std::exp2(static_cast<double>(n + 1)) - 1.0;
  return {fmt::format("{:.0f} readings after at most {} letters, 2^(n + 1) − 1 for each n up to there",
                      run.at("space", longest), longest),
          one_case(holds)};
}

Finding of_attention(const Results& results) {
  const Results runs = results.where("machine", "attention");
  if (runs.runs().empty()) return {"not run"};
  const Done& run = runs.runs().front();
  const auto longest = run.configuration.at("longest").get<std::uint64_t>();
  bool holds = true;
  for (std::uint64_t n = 1; n <= longest; ++n) {
    const auto k = static_cast<double>(n);
    // Non-empty multisets of at most n of three letters.
    const double multisets = (k + 1.0) * (k + 2.0) * (k + 3.0) / 6.0 - 1.0;
    // The last letter is the query, so that a multiset has at most as many outputs as letters.
    holds = holds && run.at("counts", n) == multisets && run.at("space", n) <= 3.0 * multisets;
  }
  return {fmt::format("at most {:.0f} outputs after at most {} letters; {:.0f} counts of the letters",
                      run.at("space", longest), longest, run.at("counts", longest)),
          one_case(holds)};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "merrill-spaces",
    .paper = "Merrill 2020",
    .claim = "Configurations of a stack and of saturated attention, counted over every word.",
    .quick_seconds = 1,
    .full_minutes = 0.2,
    .scale = {.paper = "theorems, of any size",
              .ours = "every word of up to 14 letters of two, or of up to 9 of three with 200 heads"},
    .plan = plan,
    .perform = perform,
    .claims = {
        {.name = "lemma_5",
         .says = "A stack network has exponentially many configurations, linear space.",
         .paper = "lemma 5",
         .rule = {"a stack onto which each letter of every word is pushed as 1 or −1 has 2^(n + 1) − 1 "
                  "different readings after at most n letters, n = 0 to 14"},
         .judge = of_stack},
        {.name = "theorem_16",
         .says = "Saturated attention without positions has polynomially many, logarithmic space.",
         .paper = "theorem 16",
         .rule = {"200 random heads on every word of three letters, one with equal keys: after at most "
                  "n letters no more outputs than three times the counts of letters, (n + 1)(n + 2)(n + "
                  "3)/6 − 1, n = 1 to 9"},
         .judge = of_attention}}};

}  // namespace normscope::lab::merrill_spaces
