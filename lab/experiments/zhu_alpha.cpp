#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "grouped/compare.hpp"
#include "grouped/language.hpp"

// zhu-scalar's DyT with other initial α, of norms before attention and of all others, as the paper tunes them
// by width. One seed chooses among them, others judge the choice.
namespace normscope::lab::zhu_alpha {
namespace {

using namespace grouped;

struct Pair {
  const char* name = "";
  double attention = 0.0;
  double other = 0.0;
};

/// The paper's for LLaMA of width 4096, 2048 and 1024, zhu-scalar's, and larger ones, as our width is
/// smaller.
constexpr Pair of_4096{"0.8/0.2", 0.8, 0.2};
constexpr Pair of_1024{"1/1", 1.0, 1.0};
constexpr Pair usual{"0.5/0.5", 0.5, 0.5};
constexpr Pair pairs[] = {
    of_4096, usual, {"1/0.5", 1.0, 0.5}, of_1024, {"2/2", 2.0, 2.0}, {"4/4", 4.0, 4.0}, {"8/8", 8.0, 8.0}};

/// The first chooses.
constexpr std::size_t seeds = 1 + least_seeds;

Plan plan(Size size) {
  std::vector<Json> arms{Json::object({{"arm", "LN"}, {"norm", "layer"}})};
  for (const Pair& pair : pairs) {
    arms.push_back(Json::object({{"arm", pair.name},
                                 {"norm", "dyt"},
                                 {"embedding_scalar", 8.0},  // the root of the width, as in zhu-scalar
                                 {"alpha_attention", pair.attention},
                                 {"alpha_other", pair.other}}));
  }
  Plan plan = language_plan(size, 2, arms, language_schedule(size, 1500, 250));
  if (size == Size::full) plan.seeds = seeds;
  return plan;
}

/// The arm of the pair with the least loss at the first seed, and the runs of the other seeds.
struct Choice {
  std::string arm{};
  std::string says{};
  Results others;
};

Choice choose(const Results& results) {
  Choice choice{.others = Results({})};
  if (results.runs().empty()) return choice;
  const auto by_seed = [](const Done& a, const Done& b) { return a.seed < b.seed; };
  const std::uint64_t first = std::min_element(results.runs().begin(), results.runs().end(), by_seed)->seed;
  std::vector<Done> others;
  double least = 0.0;
  std::size_t compared = 0;
  for (const Done& run : results.runs()) {
    if (run.seed != first) {
      others.push_back(run);
    } else if (run.is("norm", "dyt")) {
      const double loss = run.last("loss");
      if (compared++ > 0 && loss >= least) continue;
      least = loss;
      choice.arm = run.configuration.at("arm").get<std::string>();
    }
  }
  choice.others = Results(std::move(others));
  if (compared < std::size(pairs)) choice.arm.clear();
  choice.says =
      fmt::format("seed {} chooses {} of {} pairs, loss {:.4f}; then ", first, choice.arm, compared, least);
  return choice;
}

/// What the chosen pair is better by than another arm.
Finding chosen_over(const Results& results, const char* name, const char* arm) {
  const Choice choice = choose(results);
  if (choice.arm.empty()) return {"the seed that chooses has not run every pair"};
  Finding finding =
      compare(name, choice.others.where("arm", arm), "the chosen pair",
              choice.others.where("arm", choice.arm), {.metric = "loss", .lower_is_better = true});
  finding.ours = choice.says + finding.ours;
  return finding;
}

Finding dyt_matches(const Results& results) { return chosen_over(results, "LN", "LN"); }
Finding choice_helps(const Results& results) { return chosen_over(results, usual.name, usual.name); }
Finding narrow_needs_more(const Results& results) {
  return compare_losses(results, "arm", {of_4096.name, of_4096.name}, {of_1024.name, of_1024.name});
}

std::vector<Figure> figures(const Results& results) {
  return {at_end("loss",
                 "Held-out loss at the end with LayerNorm, and with DyT by its initial α before attention "
                 "and elsewhere; mean and deviation of the seeds.",
                 results, {.series = "norm", .metric = "loss", .title = "held-out loss (nats a character)"},
                 "arm", "LN, or initial α of DyT: before attention/elsewhere")};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "zhu-alpha",
    .paper = "Zhu 2025",
    .claim =
        "With an initial α tuned for the width, a language model trains as well with DyT as with LayerNorm.",
    .quick_seconds = 5,
    .full_minutes = 45,
    .scale = language_scale("LLaMA of 7 to 70 billion parameters", 50000.0),
    .backend = Backend::torch_or_gpu,
    .plan = plan,
    .perform = train_language,
    .claims =
        {{.name = "dyt_matches",
          .says = "With the scalar and a tuned α the loss with DyT differs from that with LN by at most 0.02 "
                  "nats.",
          .paper = "the same performance or better (abstract), with an α tuned by width (tables 11 and 12)",
          .rule = {"seeds from 501 on: the first chooses the initial α, of norms before attention and of all "
                   "others, with the least held-out loss of seven pairs; at the other seeds, held-out loss "
                   "with LN minus that with DyT, the scalar and this pair, nats",
                   Test::equivalence, least_seeds, 0.02, 0.0, large_language_model},
          .judge = dyt_matches},
         {.name = "narrow_needs_more",
          .says = "The loss is lower with the α of the narrowest LLaMA, width 1024, than with that of width "
                  "4096.",
          .paper = "wider networks need a smaller α (table 12): 1 and 1 for width 1024, 0.8 and 0.2 for 4096",
          .rule = {"seeds from 501 on: held-out loss with an initial α of 0.8 before attention and 0.2 "
                   "elsewhere minus that with 1 and 1, nats",
                   Test::mean, least_seeds, 0.005, 0.0, large_language_model},
          .judge = narrow_needs_more},
         as_ours({.name = "choice_helps",
                  .says = "The loss is lower with a tuned α than with 0.5 everywhere.",
                  .paper = "ours",
                  .rule = {"seeds from 501 on: the first chooses as above; at the other seeds, held-out loss "
                           "with 0.5 and 0.5 minus that with the chosen pair, nats",
                           Test::mean, least_seeds, 0.005},
                  .judge = choice_helps})},
    .figures = figures};

}  // namespace normscope::lab::zhu_alpha
