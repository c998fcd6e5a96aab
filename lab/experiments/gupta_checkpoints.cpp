#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/model.hpp>
#include <normscope/results/figures/vega.hpp>

#include "frame/experiment.hpp"

// The inputs of the norms of trained checkpoints: how much of them is along all-ones, and how much along
// random vectors of the same entries ±1.
namespace normscope::lab::gupta_checkpoints {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t sign_vectors = 1000;

/// A checkpoint that the forward pass models completely.
struct Trained {
  const char* name;
  const char* path;       ///< in `models` of the repository, or in the data folder
  const char* tokenizer;  ///< file beside it; empty: tokens are drawn
  bool ours;
};

constexpr Trained all[] = {
    {"kjv_gpt", "kjv_gpt", "tokenizer.json", true},
    {"wordlist_gpt", "wordlist_gpt", "vocab.json", true},
    {"gpt_nano_sort", "checkpoints/gpt_nano_sort.safetensors", "", false},
    {"stories260K", "checkpoints/llama2c_stories260K.safetensors", "tok512.bin", false},
};

Plan plan(Size size) {
  Plan plan;
  for (const Trained& one : all) {
    plan.configurations.push_back({{"checkpoint", one.name},
                                   {"contexts", size == Size::quick ? 2 : 8},
                                   {"sign_vectors", sign_vectors}});
    if (size == Size::quick) break;
  }
  return plan;
}

/// Text of `length` characters from `begin` on; lower-case words between newlines for a model of words.
std::string text_at(std::string_view whole, std::size_t begin, std::size_t length, bool words) {
  std::string text(whole.substr(begin, length));
  if (!words) return text;
  std::string cut = "\n";
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if ((lower >= 'a' && lower <= 'z') || lower == '\'') {
      cut += lower;
    } else if (cut.back() != '\n') {
      cut += '\n';
    }
  }
  return cut;
}

/// What gpt_nano_sort reads: six drawn symbols, then all but the last of them in order.
std::vector<std::size_t> sorting_task(Random& random) {
  std::vector<std::size_t> tokens(6);
  for (std::size_t& token : tokens) token = random.below(3);
  std::vector<std::size_t> sorted(tokens);
  std::sort(sorted.begin(), sorted.end());
  tokens.insert(tokens.end(), sorted.begin(), sorted.end() - 1);
  return tokens;
}

/// Second moments of the rows that enter a norm.
struct Moments {
  std::size_t width = 0;
  std::vector<double> sums{};

  void add(MatrixView<const double> rows) {
    width = rows.width();
    sums.resize(width * width);
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const std::span<const double> x = rows.row(row);
      for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t j = 0; j < width; ++j) sums[i * width + j] += x[i] * x[j];
      }
    }
  }
  /// The share of all squares along a vector of entries ±1.
  [[nodiscard]] double along(const std::vector<double>& signs) const {
    double along = 0.0;
    double trace = 0.0;
    for (std::size_t i = 0; i < width; ++i) {
      trace += sums[i * width + i];
      for (std::size_t j = 0; j < width; ++j) along += signs[i] * sums[i * width + j] * signs[j];
    }
    return along / (static_cast<double>(width) * trace);
  }
};

void perform(Run& run) {
  const auto name = run.get<std::string>("checkpoint");
  const auto* const one =
      std::find_if(std::begin(all), std::end(all), [&](const Trained& it) { return name == it.name; });
  if (one == std::end(all))
    throw Error(ErrorCode::Argument, fmt::format("gupta-checkpoints: checkpoint \"{}\" is not known", name));
  const fs::path path = one->ours ? fs::path(NORMSCOPE_MODELS) / one->path : data_file(one->path);
  const files::Checkpoint checkpoint(one->ours ? path / "model.safetensors" : path);
  const models::Model model = models::describe(checkpoint);
  const forward::Decoder decoder(checkpoint, model, 1);
  Random random(run.seed());
  std::optional<forward::Tokenizer> tokenizer;
  if (*one->tokenizer != '\0') {
    const fs::path folder = one->ours ? path : path.parent_path();
    tokenizer.emplace(folder / one->tokenizer, decoder.vocabulary());
  }
  const MappedFile file(data_file("text/tinyshakespeare.txt"));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());

  std::map<std::size_t, Moments> moments;
  for (std::size_t context = 0; context < run.get<std::size_t>("contexts"); ++context) {
    std::vector<std::size_t> tokens;
    if (tokenizer) {
      constexpr std::size_t characters = 600;
      const std::size_t begin = random.below(text.size() - characters);
      tokens = tokenizer->encode(text_at(text, begin, characters, name == "wordlist_gpt"));
      tokens.resize(std::min({tokens.size(), decoder.positions(), std::size_t{128}}));
    } else {
      tokens = sorting_task(random);
    }
    static_cast<void>(decoder.run(
        tokens, [&](std::size_t norm, MatrixView<const double> rows) { moments[norm].add(rows); }));
  }
  // The order of the pass is that of the steps.
  std::uint64_t step = 0;
  for (const std::size_t norm : decoder.norms()) {
    const Moments& seen = moments.at(norm);
    std::vector<double> signs(seen.width, 1.0);
    const double ones = seen.along(signs);
    std::size_t less = 0;
    for (std::size_t i = 0; i < run.get<std::size_t>("sign_vectors"); ++i) {
      for (double& sign : signs) sign = random.below(2) == 0 ? -1.0 : 1.0;
      less += seen.along(signs) < ones ? 1 : 0;
    }
    ++step;
    run.measure("times_width", step, static_cast<double>(seen.width) * ones);
    run.measure("rank", step, static_cast<double>(less) / static_cast<double>(sign_vectors));
  }
  run.measure("centres", step, facts(model.norms[decoder.norms().back()].kind).centers ? 1.0 : 0.0);
  run.reached(step, step, [] { return Bytes{}; });
}

/// The values of a metric over the norms.
std::vector<double> over_norms(const Done& run, std::string_view metric) {
  std::vector<double> values;
  for (const Metric& one : run.metrics) {
    if (one.name == metric) values.push_back(one.value);
  }
  return values;
}

Finding below_signs(const Results& results, bool centres) {
  Finding finding;
  for (const Done& run : results.runs()) {
    if ((run.last("centres") == 1.0) != centres) continue;
    const std::vector<double> ranks = over_norms(run, "rank");
    const std::vector<double> times = over_norms(run, "times_width");
    finding.effects.push_back(0.5 - mean(ranks));
    finding.ours += fmt::format(
        "{}{}: {:.1f} % of sign vectors have less, mean over {} norms ({:.1f} to {:.1f} %); share times "
        "width "
        "{:.3g} to {:.3g}",
        finding.ours.empty() ? "" : "; ", run.configuration.at("checkpoint").get<std::string>(),
        100.0 * mean(ranks), ranks.size(), 100.0 * *std::min_element(ranks.begin(), ranks.end()),
        100.0 * *std::max_element(ranks.begin(), ranks.end()), *std::min_element(times.begin(), times.end()),
        *std::max_element(times.begin(), times.end()));
  }
  if (finding.effects.empty()) finding.ours = "not run";
  return finding;
}

Finding of_layer_norm(const Results& results) { return below_signs(results, true); }
Finding of_rms_norm(const Results& results) { return below_signs(results, false); }

std::vector<Figure> figures(const Results& results) {
  Json rows = Json::array();
  for (const Done& run : results.runs()) {
    for (const Metric& one : run.metrics) {
      if (one.name == "rank")
        rows.push_back(
            {{"series", run.configuration.at("checkpoint")}, {"x", one.step}, {"y", 100.0 * one.value}});
    }
  }
  return {
      {"rank",
       "Share of 1000 random sign vectors along which the inputs of a norm have less than along all-ones; a "
       "direction that is not special is anywhere between 0 and 100 %, 50 % in the mean.",
       vega::curves(std::move(rows), {"norm, in the order of the pass", "sign vectors with less, %"})}};
}

constexpr std::string_view rule =
    "of each checkpoint the mean over its norms of 1/2 minus the share of 1000 random vectors of entries ±1 "
    "along which the norm's inputs have a smaller share of their squares than along all-ones; 0 for a "
    "direction that is not special";

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "gupta-checkpoints",
    .paper = "Gupta 2024",
    .claim =
        "What trained checkpoints have along all-ones at the inputs of their norms, beside random vectors of "
        "the same entries.",
    .quick_seconds = 1,
    .full_minutes = 0.5,
    .scale = {.paper = "language models of up to 7 billion parameters",
              .ours = "four complete checkpoints of 0.1 to 1.1 million parameters, 8 contexts of "
                      "Shakespeare or of the sorting task",
              .factor = 6000.0},
    .plan = plan,
    .perform = perform,
    .claims = {{.name = "layer",
                .says = "Checkpoints with LayerNorm have less along all-ones than along other directions.",
                .paper = "all models that were tried are orthogonal to it (abstract)",
                .rule = {rule, Test::mean, 1, 0.25, 0.0, "large language models"},
                .judge = of_layer_norm},
               {.name = "rms",
                .says = "So have checkpoints with RMSNorm.",
                .paper = "all models that were tried are orthogonal to it (abstract)",
                .rule = {rule, Test::mean, 1, 0.25, 0.0, "large language models"},
                .judge = of_rms_norm}},
    .figures = figures};

}  // namespace normscope::lab::gupta_checkpoints
