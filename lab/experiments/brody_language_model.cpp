#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/snapshot.hpp>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "language/corpus.hpp"
#include "language/key_shares.hpp"
#include "language/network.hpp"

namespace normscope::lab::brody_language_model {
namespace {

using language::Corpus;
using language::KeyShares;
using language::Network;
using language::Shape;

constexpr const char* with_scaling = "LayerNorm";
constexpr const char* without_scaling = "projection only";
constexpr std::size_t layers = 4;
constexpr std::size_t seeds = 3;

Plan plan(Size size) {
  const bool full = size == Size::full;
  Plan plan{.seeds = full ? seeds : 1U};
  // The word list is installed, so that the small size runs without data; a sweep over "corpus" trains on it
  // too.
  for (const char* corpus : full ? std::vector{"text"} : std::vector{"text", "words"}) {
    for (const bool scales : {true, false}) {
      plan.configurations.push_back({{"arm", scales ? with_scaling : without_scaling},
                                     {"scales", scales},
                                     {"corpus", corpus},
                                     {"width", 8},
                                     {"heads", 4},
                                     {"layers", layers},
                                     {"context", full ? 256 : 32},
                                     {"batch", 8},
                                     {"steps", full ? 20000 : 40},
                                     {"rate", 3e-3},
                                     {"dropout", 0.1},
                                     {"measure_every", full ? 1000 : 20},
                                     {"held_out_rows", full ? 64 : 8},
                                     {"read_rows", full ? 8 : 2}});
    }
  }
  return plan;
}

Corpus corpus_of(const std::string& name) {
  if (name == "words") return language::word_corpus("/usr/share/dict/american-english");
  if (name == "text") return language::text_corpus(data_file("text/tinyshakespeare.txt"));
  throw Error(ErrorCode::Argument,
              fmt::format("language model: corpus \"{}\", expected text or words", name));
}

/// The held-out sequences, drawn once for all arms and seeds.
class HeldOut {
 public:
  HeldOut(const Run& run, const Corpus& corpus)
      : context_(run.get<std::size_t>("context")),
        rows_(run.get<std::size_t>("held_out_rows")),
        read_(std::min(run.get<std::size_t>("read_rows"), rows_)) {
    Random random(1);
    pieces_ = language::pieces(corpus.held_out, rows_, context_ + 1, random);
  }

  void measure(Run& run, Network& network, const Shape& shape, std::uint64_t step) const {
    run.measure("held_out", step, network.loss(pieces_, rows_));
    std::vector<KeyShares> shares(shape.layers);
    std::size_t undecided = 0;
    for (std::size_t row = 0; row < read_; ++row) {
      const std::span piece = std::span<const std::uint8_t>(pieces_).subspan(row * (context_ + 1), context_);
      const std::vector<std::vector<double>> inputs = network.attention_inputs(piece);
      for (std::size_t layer = 0; layer < shape.layers; ++layer) {
        const KeyShares found = language::key_shares(inputs[layer], {.width = shape.width, .eps = shape.eps},
                                                     shape.scales, network.key_map(layer), shape.heads);
        const double part = 1.0 / static_cast<double>(read_);
        shares[layer].rows += part * found.rows;
        shares[layer].keys += part * found.keys;
        shares[layer].in_head += part * found.in_head;
        undecided += found.undecided;
      }
    }
    for (std::size_t layer = 0; layer < shape.layers; ++layer) {
      run.measure(fmt::format("lost_before_{}", layer + 1), step, shares[layer].rows);
      run.measure(fmt::format("lost_{}", layer + 1), step, shares[layer].keys);
      run.measure(fmt::format("lost_in_head_{}", layer + 1), step, shares[layer].in_head);
    }
    run.measure("undecided", step, static_cast<double>(undecided));
  }

 private:
  std::size_t context_;
  std::size_t rows_;
  std::size_t read_;
  std::vector<std::uint8_t> pieces_{};
};

/// A seed for each step, so that a resumed run needs no earlier random numbers.
std::uint64_t noise(std::uint64_t seed, std::uint64_t step) {
  return seed * 0x9e3779b97f4a7c15U + step * 0xbf58476d1ce4e5b9U;
}

void perform(Run& run) {
  const Corpus corpus = corpus_of(run.get<std::string>("corpus"));
  const Shape shape{.vocabulary = corpus.vocabulary,
                    .context = run.get<std::size_t>("context"),
                    .width = run.get<std::size_t>("width"),
                    .heads = run.get<std::size_t>("heads"),
                    .layers = run.get<std::size_t>("layers"),
                    .scales = run.get<bool>("scales"),
                    .dropout = run.get<double>("dropout")};
  const auto batch = run.get<std::size_t>("batch");
  const auto steps = run.get<std::size_t>("steps");
  const auto every = run.get<std::size_t>("measure_every");
  Network network(shape, run.seed());
  const HeldOut held_out(run, corpus);
  double sum = 0.0;
  std::size_t summed = 0;
  if (run.step() > 0) {
    std::vector<float> state;
    Unpacker unpacker(run.progress());
    unpacker.get(state);
    unpacker.get(sum);
    unpacker.get(summed);
    unpacker.finish();
    network.restore(state);
  } else {
    held_out.measure(run, network, shape, 0);
    run.measure("normal_keys", 0, language::normal_share(shape.context, shape.width - 1, 8, run.seed()));
  }
  for (std::uint64_t step = run.step() + 1; step <= steps; ++step) {
    Random random(noise(run.seed(), step));
    const std::vector<std::uint8_t> pieces =
        language::pieces(corpus.training, batch, shape.context + 1, random);
    const double left = 1.0 - static_cast<double>(step - 1) / static_cast<double>(steps);
    sum += network.train(pieces, batch, {.learning = run.get<double>("rate") * left},
                         noise(run.seed(), step) >> 1U);
    ++summed;
    if (step % every == 0 || step == steps) {
      run.measure("loss", step, sum / static_cast<double>(summed));
      sum = 0.0;
      summed = 0;
      held_out.measure(run, network, shape, step);
    }
    run.reached(step, steps, [&] {
      Packer packer;
      packer.put(network.state());
      packer.put(sum);
      packer.put(summed);
      return packer.bytes();
    });
  }
}

Results arm(const Results& results, const char* name) { return results.where("arm", name); }

/// The final means over runs, one per layer.
std::vector<Spread> by_layer(const Results& runs, const char* metric) {
  std::vector<Spread> spreads;
  for (std::size_t layer = 1; layer <= layers; ++layer) {
    spreads.push_back(runs.last(fmt::format("{}_{}", metric, layer)));
  }
  return spreads;
}

std::string means_of(const std::vector<Spread>& spreads) {
  std::string text;
  for (const Spread& spread : spreads)
    text += fmt::format("{}{:.1f}", text.empty() ? "" : ", ", 100.0 * spread.mean);
  return text + " % in layers 1 to 4";
}

/// For each corpus and layer one number for every seed.
std::vector<std::vector<double>> in_layers(const Results& results,
                                           const std::function<double(const Done&, std::size_t)>& number) {
  std::vector<std::vector<double>> all;
  for (const Json& corpus : results.all("corpus")) {
    for (std::size_t layer = 1; layer <= layers; ++layer) {
      all.push_back(
          results.where("corpus", corpus).numbers([&](const Done& run) { return number(run, layer); }));
    }
  }
  return all;
}

double at_layer(const Done& run, const char* metric, std::size_t layer) {
  return run.last(fmt::format("{}_{}", metric, layer));
}

Finding judge_scaled(const Results& results) {
  const Results runs = arm(results, with_scaling);
  if (runs.runs().empty()) return {"not every arm has been run"};
  return {means_of(by_layer(runs, "lost")), runs.numbers([](const Done& run) {
            double most = 0.0;
            for (std::size_t layer = 1; layer <= layers; ++layer)
              most = std::max(most, at_layer(run, "lost", layer));
            return most == 0.0 ? 1.0 : 0.0;
          })};
}

Finding judge_before(const Results& results) {
  const Results runs = arm(results, with_scaling);
  if (runs.runs().empty()) return {"not every arm has been run"};
  return weakest(means_of(by_layer(runs, "lost_before")),
                 in_layers(runs, [](const Done& run, std::size_t layer) {
                   return at_layer(run, "lost_before", layer);
                 }));
}

Finding judge_unscaled(const Results& results) {
  const Results runs = arm(results, without_scaling);
  if (runs.runs().empty()) return {"not every arm has been run"};
  return weakest(means_of(by_layer(runs, "lost")), in_layers(runs, [](const Done& run, std::size_t layer) {
                   return at_layer(run, "lost", layer);
                 }));
}

Finding judge_normal(const Results& results) {
  const Results runs = arm(results, without_scaling);
  if (runs.runs().empty()) return {"not every arm has been run"};
  return weakest(fmt::format("{}; of normal keys {:.1f} %", means_of(by_layer(runs, "lost")),
                             100.0 * runs.last("normal_keys").mean),
                 in_layers(runs, [](const Done& run, std::size_t layer) {
                   return run.last("normal_keys") - at_layer(run, "lost", layer);
                 }));
}

Finding judge_heads(const Results& results) {
  const Results runs = arm(results, with_scaling);
  if (runs.runs().empty()) return {"not every arm has been run"};
  return weakest(means_of(by_layer(runs, "lost_in_head")),
                 in_layers(runs, [](const Done& run, std::size_t layer) {
                   return at_layer(run, "lost_in_head", layer);
                 }));
}

Finding judge_loss(const Results& results) {
  const Results with = arm(results, with_scaling);
  const Results without = arm(results, without_scaling);
  if (with.runs().empty() || without.runs().empty()) return {"not every arm has been run"};
  std::string text;
  std::vector<std::vector<double>> all;
  for (const Json& corpus : results.all("corpus")) {
    const auto paired = Results::paired(with.where("corpus", corpus), without.where("corpus", corpus),
                                        [](const Done& run) { return run.last("held_out"); });
    text += fmt::format("{}{}: {:.3f} ± {:.3f} higher without, in {} of {} seeds", text.empty() ? "" : "; ",
                        shown(corpus), paired.difference.mean, paired.difference.deviation, paired.larger,
                        paired.difference.count);
    all.push_back(paired.differences);
  }
  return weakest(std::move(text), all);
}

/// Unselectable keys of a layer over steps, beside as many normal keys.
Figure lost_over_steps(const std::string& corpus, const Results& there, std::size_t layer) {
  const std::string metric = fmt::format("lost_{}", layer);
  Figure figure =
      over_steps(fmt::format("{}-lost-{}", corpus, layer),
                 fmt::format("Language model on {}: unselectable keys of layer {}.", corpus, layer), there,
                 {.series = "arm", .metric = metric, .title = "share of keys"});
  Json& rows = figure.specification["data"]["values"];
  const Json drawn = rows;
  for (const Json& row : drawn) {
    rows.push_back({{"series", "normal keys"}, {"x", row["x"]}, {"y", there.last("normal_keys").mean}});
  }
  return figure;
}

std::vector<Figure> figures(const Results& results) {
  std::vector<Figure> all;
  for (const Json& corpus : results.all("corpus")) {
    const Results there = results.where("corpus", corpus);
    const std::string name = shown(corpus);
    all.push_back(over_steps(
        name + "-loss", fmt::format("Language model on {}: loss held out, after the first 1000 steps.", name),
        there, {.series = "arm", .metric = "held_out", .title = "nats a character", .from = 1}));
    for (std::size_t layer = 1; layer <= layers; ++layer) all.push_back(lost_over_steps(name, there, layer));
  }
  return all;
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "brody-language-model",
    .paper = "Brody 2023",
    .claim =
        "Without LayerNorm's scaling, keys of a language model become unselectable and it learns more "
        "slowly.",
    .quick_seconds = 10,
    .full_minutes = 60,
    .scale = {.paper = "50,000 steps of 16 rows of 1024 tokens",
              .ours = "20,000 steps of 8 rows of 256 characters",
              .factor = 20},
    .backend = Backend::torch,
    .plan = plan,
    .perform = perform,
    .claims =
        {{"scaled",
          "With scaling every key of every layer can be selected.",
          "0 in layers 1 to 4 (table 1)",
          {"0 unselectable at the end in every layer, sequence, corpus and seed, 3 seeds", Test::every_case,
           seeds},
          judge_scaled},
         {"before",
          "In a model with LayerNorm, many vectors before the norm would be unselectable as keys.",
          "44.8, 28.5, 22.3, 26.1 % in layers 1 to 4, and 0 behind the norm (table 2)",
          {"share at the end with scaling, of the norm's input rows, of the layer and corpus with the "
           "least",
           Test::mean, seeds, 0.1},
          judge_before},
         {"unscaled",
          "Without scaling many keys of every layer cannot be selected.",
          "51.0, 32.2, 34.7, 36.8 % in layers 1 to 4 (table 1)",
          {"share at the end without scaling, of the layer and corpus with the least", Test::mean, seeds,
           0.1},
          judge_unscaled},
         as_ours({"below_normal",
                  "The fraction is no larger than for as many normal keys (ours).",
                  "no such comparison",
                  {"share of 256 normal keys of width 7 minus that of the keys at the end, of the layer and "
                   "corpus with the least difference",
                   Test::mean, seeds, 0.0},
                  judge_normal}),
         as_ours({"heads",
                  "A head of two dimensions cannot select most keys, scaled or not (ours).",
                  "no such test",
                  {"share at the end with scaling, over heads, of the layer and corpus with the least",
                   Test::mean, seeds, 0.9, 0.5},
                  judge_heads}),
         {"loss",
          "The held-out loss is lower with scaling.",
          "by 0.040 nats a token after 20,000 steps, 0.050 after 50,000 (figure 4b)",
          {"held-out loss at the end without scaling minus with, nats a character, of the corpus with "
           "the least",
           Test::mean, seeds, 0.01},
          judge_loss,
          "the runs see a twentieth of the paper's tokens and end before its curves part, at step 10,000"}},
    .figures = figures};

}  // namespace normscope::lab::brody_language_model
