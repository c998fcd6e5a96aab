#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <normscope/nets/rnn/theorems.hpp>
#include <normscope/results/figures/vega.hpp>

#include "frame/experiment.hpp"

// Exact checks of the theorems: every word and window up to a length, and ranks in rational arithmetic.
namespace normscope::lab::merrill_theorems {
namespace {

namespace am = nets::rnn;

/// Smallest sizes for a conclusive verdict.
constexpr std::size_t least_longest = 13;
constexpr std::size_t least_machines = 300;
constexpr std::size_t least_layers = 2000;
constexpr std::size_t most_letters = 12;

Plan plan(Size size) {
  const bool full = size == Size::full;
  return {{Json{{"longest", full ? least_longest : 9},
                {"machines", full ? least_machines : 30},
                {"layers", full ? least_layers : 50}}},
          1};
}

/// One check of a run; it has a step and a random stream of its own.
struct Check {
  const Run& run;
  Random random;
  std::uint64_t step;
  std::vector<std::pair<std::string, double>> numbers{};

  template <typename Number>
  void found(std::string name, Number value) {
    numbers.emplace_back(std::move(name), static_cast<double>(value));
  }
  [[nodiscard]] std::size_t longest() const { return run.get<std::size_t>("longest"); }
};

void ranks(Check& check) {
  for (const std::size_t n : {4U, 8U, 12U}) {
    const std::vector<am::Word> as = am::powers(0, n);
    const std::vector<am::Word> bs = am::powers(1, n);
    check.found(fmt::format("rank_clipped_{}", n), am::hankel_rank(am::clipped_count, as, bs));
    check.found(fmt::format("rank_stack_{}", n), am::hankel_rank(am::stack_reading, as, bs));
    check.found(fmt::format("rank_attention_{}", n), am::hankel_rank(am::attention_reading, as, bs));
  }
  const std::vector<am::Word> words = am::all_words(2, 4);
  const am::WeightedAutomaton binary = am::binary_value();
  check.found("rank_stack_as_printed", am::hankel_rank(am::stack_reading_as_printed, words, words));
  check.found("rank_binary",
              am::hankel_rank([&](am::WordView word) { return binary.value(word); }, words, words));
  for (std::size_t longest = 1; longest <= 4; ++longest) {
    const std::vector<am::Word> block = am::all_words(2, longest);
    check.found(fmt::format("rank_anbn_{}", longest), am::hankel_rank(am::anbn_value, block, block));
  }
}

void limit(Check& check) {
  for (const int factor : {1, 3, 5, 10, 20}) {
    check.found(fmt::format("clipped_error_{}", factor), am::clipped_difference_error(factor, 25));
  }
}

void machines(Check& check) {
  std::size_t mistakes = 0;
  for (std::size_t i = 0; i < check.run.get<std::size_t>("machines"); ++i) {
    mistakes += am::weighted_mistakes(am::draw_machine(true, check.random), 30, check.random);
  }
  check.found("machine_mistakes", mistakes);
}

void layers(Check& check) {
  std::size_t mistakes = 0;
  double most_bend = 0.0;
  double most_distance = 0.0;
  std::size_t windows = 0;
  for (std::size_t i = 0; i < check.run.get<std::size_t>("layers"); ++i) {
    const std::size_t window = 1 + check.random.below(4);
    const am::Qrnn layer = am::draw_layer(window, 3, check.random);
    mistakes += am::machine_mistakes(layer, 3, check.random);
    most_bend = std::max(most_bend, am::bend(layer));
    most_distance = std::max(most_distance, am::attack_distance(layer));
  }
  for (std::size_t window = 1; window <= 6; ++window) {
    const auto [in, out] = am::suffix_attack(window);
    windows += am::same_windows(in, out, window) && am::begins_with_member(in) && !am::begins_with_member(out)
                   ? 1
                   : 0;
  }
  check.found("layer_mistakes", mistakes);
  check.found("most_bend", most_bend);
  check.found("most_attack_distance", most_distance);
  check.found("attacks_with_same_windows", windows);
}

void words(Check& check) {
  const std::size_t longest = check.longest();
  const auto anbn = [](am::WordView word) { return contains(am::Language::anbn, word); };
  const am::WeightedAutomaton series = am::anbn_series();
  std::size_t values = 0;
  const auto positive = [&](am::WordView word) {
    const Rational value = series.value(word);
    values += value == am::anbn_value(word) ? 0 : 1;
    return value.sign() > 0;
  };
  check.found("thm8_mistakes", am::compare(positive, anbn, 2, longest).differ);
  check.found("thm8_values_off", values);
  const am::Qrnn layer = am::anbn_layer();
  check.found(
      "thm10_mistakes",
      am::compare([&](am::WordView word) { return am::accepts_anbn(layer, word); }, anbn, 2, longest).differ);
  const am::PrefixLayers two = am::prefix_layers();
  check.found(
      "thm12_mistakes",
      am::compare([&](am::WordView word) { return am::accepts_prefix(two, word); },
                  [](am::WordView word) { return word.empty() || am::begins_with_member(word); }, 2, longest)
          .differ);
  check.found("thm13_mistakes",
              am::compare(am::lstm_threshold_counter(), am::Language::anbn, longest).differ);
  const am::Acceptor prefix = am::lstm_prefix_counter();
  const am::Comparison last = am::compare([&](am::WordView word) { return am::accepts(prefix, word); },
                                          am::begins_with_member, 2, longest);
  check.found("thm14_mistakes", last.differ);
  check.found("words", last.words);
}

am::Cell draw_cell(am::CellKind kind, std::size_t width, Random& random) {
  am::Cell cell = am::Cell::zeros(kind, 2, width);
  for (double& value : cell.parameters) value = 2.0 * random.uniform() - 1.0;
  return cell;
}

/// The largest number of configurations, over a few cells or machines of each kind, after n letters.
void spaces(Check& check) {
  const auto report = [&](const char* name, const std::vector<std::size_t>& counts) {
    for (std::size_t n = 0; n <= most_letters; ++n)
      check.found(fmt::format("space_{}_{}", name, n), counts[n]);
  };
  const auto most_of = [&](am::CellKind kind) {
    std::vector<std::size_t> most(most_letters + 1, 0);
    for (int i = 0; i < 100; ++i) {
      const std::vector<std::size_t> counts = am::space(draw_cell(kind, 3, check.random), most_letters);
      for (std::size_t n = 0; n <= most_letters; ++n) most[n] = std::max(most[n], counts[n]);
    }
    return most;
  };
  report("elman_tanh", most_of(am::CellKind::elman_tanh));
  report("gru", most_of(am::CellKind::gru));
  report("clipped", am::clipped_difference().space(most_letters));
  am::CounterMachine difference(2, 1, 1);
  difference.set(0, 0, 0, std::vector{am::Update{true, 1}});
  difference.set(1, 0, 0, std::vector{am::Update{true, -1}});
  report("difference", difference.space(most_letters));
  am::CounterMachine both(2, 1, 2);
  both.set(0, 0, 0, std::vector{am::Update{true, 1}, am::Update{}});
  both.set(1, 0, 0, std::vector{am::Update{}, am::Update{true, 1}});
  report("both_counts", both.space(most_letters));
  // For the weighted automaton, count its distinct values over all words of n digits.
  const am::WeightedAutomaton binary = am::binary_value();
  std::set<double> values;
  std::vector<std::size_t> counts;
  for (am::Word word; word.size() <= most_letters; am::next_word(word, 2)) {
    values.insert(binary.value(word).value());
    counts.resize(word.size() + 1);
    counts.back() = values.size();
  }
  report("binary", counts);
}

constexpr void (*checks[])(Check&) = {ranks, limit, machines, layers, words, spaces};

void perform(Run& run) {
  constexpr std::uint64_t total = std::size(checks);
  for (std::uint64_t step = run.step(); step < total; ++step) {
    Check check{run, Random(run.seed() + (step << 32U)), step + 1};
    checks[step](check);
    for (auto& [name, value] : check.numbers) run.measure(name, check.step, value);
    run.reached(step + 1, total, [] { return Bytes{}; });
  }
}

/// The first run; null if there is none.
const Done* only(const Results& results) { return results.runs().empty() ? nullptr : results.runs().data(); }

struct Part {
  const char* metric;
  double expected;
  const char* says;  ///< in front of the number
};

/// Reproduced if each number is as expected, in a run whose configuration has at least `least` under `key`.
Finding expect(const Results& results, std::initializer_list<Part> parts, const char* key,
               std::size_t least) {
  const Done* const run = only(results);
  if (run == nullptr) return {"no run"};
  Finding finding{{}, one_case(true)};
  for (const Part& part : parts) {
    finding.ours +=
        fmt::format("{}{}{:g}", finding.ours.empty() ? "" : ", ", part.says, run->last(part.metric));
    if (run->last(part.metric) != part.expected) finding.effects = one_case(false);
  }
  if (key != nullptr) {
    finding.ours += fmt::format("; {} {}", key == std::string_view("longest") ? "letters up to" : key,
                                run->configuration.at(key).get<std::size_t>());
    // A smaller size supports nothing, but can refute.
    if (finding.effects == one_case(true) && run->configuration.at(key).get<std::size_t>() < least)
      finding.effects.clear();
  }
  return finding;
}

Finding limit_holds(const Results& results) {
  const Done* const run = only(results);
  if (run == nullptr) return {"no run"};
  Finding finding{"largest error", one_case(true)};
  double before = 1e300;
  for (const int factor : {1, 3, 5, 10, 20}) {
    const double error = run->last(fmt::format("clipped_error_{}", factor));
    finding.ours += fmt::format(" {:.3g} (N = {})", error, factor);
    if (!(error < before)) finding.effects = one_case(false);
    before = error;
  }
  if (before > 1e-6) finding.effects = one_case(false);
  return finding;
}

Finding spaces_hold(const Results& results) {
  const Done* const run = only(results);
  if (run == nullptr) return {"no run"};
  const auto at = [&](const char* name, std::size_t n) {
    return run->last(fmt::format("space_{}_{}", name, n));
  };
  bool holds = true;
  for (std::size_t n = 0; n <= most_letters; ++n) {
    const auto k = static_cast<double>(n);
    holds = holds && at("difference", n) == 2 * k + 1 && at("clipped", n) == k + 1 &&
            at("both_counts", n) == (k + 1) * (k + 2) / 2 && at("binary", n) == std::exp2(k) &&
            at("elman_tanh", n) <= 9.0 && at("gru", n) <= 27.0;
  }
  return {fmt::format("after {} letters: {:g}, {:g}, {:g}, {:g}; tanh {:g}, gru {:g}", most_letters,
                      at("difference", most_letters), at("clipped", most_letters),
                      at("both_counts", most_letters), at("binary", most_letters),
                      at("elman_tanh", most_letters), at("gru", most_letters)),
          one_case(holds)};
}

std::vector<Figure> figures(const Results& results) {
  const Done* const run = only(results);
  if (run == nullptr) return {};
  struct Line {
    const char* name;
    const char* title;
  };
  constexpr Line lines[] = {{"binary", "binary numbers"},
                            {"both_counts", "#a and #b"},
                            {"difference", "#a − #b"},
                            {"clipped", "max(0, #a − #b)"},
                            {"gru", "gru"},
                            {"elman_tanh", "elman_tanh"}};
  Json rows = Json::array();
  for (const Line& line : lines) {
    for (std::size_t n = 0; n <= most_letters; ++n) {
      rows.push_back({{"series", line.title},
                      {"x", n},
                      {"y", std::log2(run->last(fmt::format("space_{}_{}", line.name, n)))}});
    }
  }
  return {
      {"space",
       "Configurations by number of letters; gru and elman_tanh: maximum over 100 random cells of 3 units",
       vega::curves(std::move(rows), {"letters read", "log2 of configurations"})}};
}

constexpr std::string_view on_every_word = "no mistake on every word of up to 13 letters";

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "merrill-theorems",
    .paper = "Merrill 2020",
    .claim =
        "What saturated networks, counter machines and weighted automata can and cannot compute, checked "
        "exactly.",
    .quick_seconds = 1,
    .full_minutes = 0.2,
    .scale = {.paper = "theorems, of any size",
              .ours = "every word of up to 13 letters, 300 machines, 2000 layers"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{"lemma_1",
          "max(0, #a − #b) on words a…ab…b is not a rational series",
          "lemma 1",
          {"blocks a^i, b^j of 4, 8 and 12 rows have rank 3, 7 and 11"},
          [](const Results& results) {
            return expect(
                results,
                {{"rank_clipped_4", 3, "rank "}, {"rank_clipped_8", 7, ""}, {"rank_clipped_12", 11, ""}},
                nullptr, 0);
          }},
         {"theorem_2",
          "An LSTM computes that counter in the limit of large weights",
          "theorem 2",
          {"the largest error for i, j < 25 falls from N = 1 over 3, 5, 10 to 20, there at most 1e-6"},
          limit_holds},
         {"theorems_3_4_7",
          "Counter machines whose moves do not depend on their counters are weighted automata",
          "theorems 3, 4 and 7",
          {"300 random machines, 30 words and each counter: every value equal"},
          [](const Results& results) {
            return expect(results, {{"machine_mistakes", 0, "values that differ: "}}, "machines",
                          least_machines);
          }},
         {"qrnns_are_machines",
          "Saturated QRNNs are weighted automata",
          "corollary in section 3.3",
          {"2000 random layers, 3 words each: c, the machine's counters and the automata's values equal"},
          [](const Results& results) {
            return expect(results, {{"layer_mistakes", 0, "values that differ: "}}, "layers", least_layers);
          }},
         {"theorem_6",
          "The values of a weighted automaton with two states grow faster than those of any network",
          "theorem 6",
          {"reading binary numbers has rank 2 and 2^n different values after n letters, n = 12"},
          [](const Results& results) {
            return expect(
                results,
                {{"rank_binary", 2, "rank "}, {"space_binary_12", 4096, "numbers of up to 12 digits: "}},
                nullptr, 0);
          }},
         {"theorem_8",
          "A weighted automaton with one threshold recognizes a^n b^n, with 7 states and no fewer",
          "theorem 8",
          {"no mistake and every value right on every word of up to 13 letters; rank 3, 7, 7, 7 on "
           "words of up to 1 … 4"},
          [](const Results& results) {
            return expect(results,
                          {{"thm8_mistakes", 0, "mistakes: "},
                           {"thm8_values_off", 0, "wrong values: "},
                           {"rank_anbn_1", 3, "rank "},
                           {"rank_anbn_2", 7, ""},
                           {"rank_anbn_3", 7, ""},
                           {"rank_anbn_4", 7, ""}},
                          "longest", least_longest);
          }},
         {"theorem_9",
          "No saturated QRNN with one threshold recognizes a^n b^n",
          "theorem 9",
          {"2000 random layers: second differences of c over a^n b^m, m = n − 1, n, n + 1, are 0"},
          [](const Results& results) {
            return expect(results, {{"most_bend", 0, "largest second difference: "}}, "layers", least_layers);
          }},
         {"theorem_10",
          "Two layers of thresholds on a saturated QRNN recognize a^n b^n",
          "theorem 10",
          {on_every_word},
          [](const Results& results) {
            return expect(results, {{"thm10_mistakes", 0, "mistakes: "}}, "longest", least_longest);
          }},
         {"theorem_11",
          "No decoder of a saturated QRNN recognizes a^n b^n Σ*",
          "theorem 11",
          {"for windows of 1 … 6 the two words differ in membership and have the same windows; c of 2000 "
           "random layers is equal after both"},
          [](const Results& results) {
            return expect(results,
                          {{"attacks_with_same_windows", 6, "windows in equal number: "},
                           {"most_attack_distance", 0, "largest difference of c: "}},
                          "layers", least_layers);
          }},
         {"theorem_12",
          "Two layers of QRNN recognize a^n b^n Σ*, with the empty word",
          "theorem 12, e = 1 for words that begin with b",
          {on_every_word},
          [](const Results& results) {
            return expect(results, {{"thm12_mistakes", 0, "mistakes: "}}, "longest", least_longest);
          }},
         {"theorem_13",
          "An LSTM with one threshold recognizes a^n b^n",
          "theorem 13, its second unit corrected",
          {on_every_word},
          [](const Results& results) {
            return expect(results, {{"thm13_mistakes", 0, "mistakes: "}}, "longest", least_longest);
          }},
         {"theorem_14",
          "An LSTM with one threshold recognizes a^n b^n Σ*",
          "theorem 14, its last unit corrected",
          {on_every_word},
          [](const Results& results) {
            return expect(results, {{"thm14_mistakes", 0, "mistakes: "}}, "longest", least_longest);
          }},
         {"theorem_15",
          "Saturated attention is not a rational series",
          "theorem 15",
          {"rank n of blocks of n rows, n = 4, 8, 12"},
          [](const Results& results) {
            return expect(results,
                          {{"rank_attention_4", 4, "rank "},
                           {"rank_attention_8", 8, ""},
                           {"rank_attention_12", 12, ""}},
                          nullptr, 0);
          }},
         {"lemma_6",
          "Reading a stack is not a rational series",
          "lemma 6",
          {"blocks of 4, 8 and 12 rows have rank 3, 7 and 11"},
          [](const Results& results) {
            return expect(results,
                          {{"rank_stack_4", 3, "rank "}, {"rank_stack_8", 7, ""}, {"rank_stack_12", 11, ""}},
                          nullptr, 0);
          }},
         {"definition_7",
          "As printed, without a floor, the stack's reading is not rational",
          "definition 7",
          {"its rank on words of up to 4 letters is more than 2"},
          [](const Results& results) {
            const Done* const run = only(results);
            if (run == nullptr) return Finding{"no run"};
            const double rank = run->last("rank_stack_as_printed");
            return Finding{fmt::format("rank {:g}", rank), one_case(rank > 2.0)};
          }},
         {"space",
          "Cells with bounded states have a constant number of configurations, counters a polynomial one",
          "section 3 and figure 1",
          {"after n = 0 … 12 letters 2n + 1, n + 1, (n + 1)(n + 2)/2 and 2^n of difference, clipped, "
           "both_counts and binary; 100 random cells of 3 units: at most 9 (tanh) and 27 (gru)"},
          spaces_hold}},
    .figures = figures};

}  // namespace normscope::lab::merrill_theorems
