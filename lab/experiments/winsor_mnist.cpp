#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/nets/tasks.hpp>
#include <normscope/results/figures/vega.hpp>

#include "frame/experiment.hpp"
#include "ln_nets/digits.hpp"

namespace normscope::lab::winsor_mnist {
namespace {

using nets::Activation;

constexpr std::size_t least_seeds = 3;
constexpr double reads_digits = 0.97;
constexpr double linear_map = 0.9256;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : least_seeds};
  const auto add = [&](const char* arm, Activation activation, std::size_t groups, std::size_t width = 128,
                       std::size_t depth = 2, std::size_t steps = 6000) {
    Json configuration{{"arm", arm}, {"rows", quick ? 1000 : 50000}};
    configuration.update(ln_nets::to_json({.width = width,
                                           .depth = depth,
                                           .activation = activation,
                                           .norm = NormKind::layer,
                                           .groups = groups,
                                           .rate = 2e-3,
                                           .schedule = nets::Schedule::cosine,
                                           .steps = quick ? 100U : steps,
                                           .batch = 100,
                                           .precision = Dtype::F32}));
    plan.configurations.push_back(std::move(configuration));
  };
  add("LN", Activation::norm, 1);
  add("LN in 16 groups", Activation::norm, 16);
  add("linear", Activation::none, 1);
  add("ReLU", Activation::relu, 1);
  // Deeper nets on the leading principal components, which are a fixed linear map of the pixels.
  for (const std::size_t depth :
       quick ? std::vector<std::size_t>{4} : std::vector<std::size_t>{4, 8, 12, 16, 24, 32}) {
    plan.configurations.push_back(ln_nets::deep_digits(size, 32, depth, 40000));
  }
  if (quick) return plan;
  for (const std::size_t width : {16U, 32U, 64U}) {
    for (const std::size_t depth : {2U, 4U, 8U}) {
      for (const std::size_t steps : {6000U, 20000U}) add("LN", Activation::norm, 1, width, depth, steps);
    }
  }
  return plan;
}

double test_accuracy(const Done& run) { return run.last("test_accuracy"); }

/// The runs of the plain LayerNorm nets of the configuration with the highest mean accuracy on the validation
/// images.
///
/// Requires  at least one such run
Results chosen(const Results& results) {
  std::map<std::string, std::vector<Done>> by_configuration;
  const Results norms = results.where("arm", "LN");
  for (const Done& run : norms.runs()) by_configuration[run.configuration.dump()].push_back(run);
  Results best({});
  for (const auto& [configuration, runs] : by_configuration) {
    const Results these(runs);
    if (best.runs().empty() || these.last("validation_accuracy").mean > best.last("validation_accuracy").mean)
      best = these;
  }
  return best;
}

std::string shape_of(const Results& runs) {
  const Json& configuration = runs.runs().front().configuration;
  const int components = configuration.value("components", 0);
  return fmt::format("width {}, {} norms, {} steps{}", configuration.at("width").get<int>(),
                     configuration.at("depth").get<int>(), configuration.at("steps").get<int>(),
                     components > 0 ? fmt::format(" on {} principal components", components) : "");
}

std::string accuracy_of(const Results& runs) {
  const Spread spread = runs.spread(test_accuracy);
  return fmt::format("test accuracy {:.2f} ± {:.2f} %, {} seeds", 100.0 * spread.mean,
                     100.0 * spread.deviation, spread.count);
}

Finding solved(const Results& results) {
  if (results.where("arm", "LN").runs().empty()) return {"not run"};
  const Results best = chosen(results);
  return {fmt::format("chosen by validation: {}; {}", shape_of(best), accuracy_of(best)),
          best.numbers(test_accuracy)};
}

Finding solved_in_groups(const Results& results) {
  const Results runs = results.where("arm", "LN in 16 groups");
  if (runs.runs().empty()) return {"not run"};
  return {fmt::format("LN in 16 groups: {}", accuracy_of(runs)), runs.numbers(test_accuracy)};
}

Finding norm_adds(const Results& results) {
  const Results linear = results.where("arm", "linear");
  const Results relu = results.where("arm", "ReLU");
  if (results.where("arm", "LN").runs().empty() || linear.runs().empty() || relu.runs().empty())
    return {"not run"};
  const Results best = chosen(results);
  const Results::Paired gain = Results::paired(linear, best, test_accuracy);
  std::string ours =
      fmt::format("LN ({}) − linear {:.2f} ± {:.2f} points; linear {:.2f}, ReLU {:.2f} %", shape_of(best),
                  100.0 * gain.difference.mean, 100.0 * gain.difference.deviation,
                  100.0 * linear.spread(test_accuracy).mean, 100.0 * relu.spread(test_accuracy).mean);
  return {std::move(ours), gain.differences};
}

std::vector<Figure> figures(const Results& results) {
  Json rows = Json::array();
  std::vector<std::string> failed;
  const Results norms = results.where("arm", "LN");
  for (const Done& run : norms.runs()) {
    const Json& configuration = run.configuration;
    const bool reduced = configuration.value("components", 0) > 0;
    if (!reduced && configuration.at("steps") != 20000) continue;
    const double percent = 100.0 * test_accuracy(run);
    // Beside a training that fails, the differences of the others could not be seen.
    if (percent < 50.0) {
      failed.push_back(fmt::format("{} norms, {:.1f} %", configuration.at("depth").get<int>(), percent));
      continue;
    }
    rows.push_back({{"series", fmt::format("width {}{}", configuration.at("width").get<int>(),
                                           reduced ? " on 80 components" : "")},
                    {"x", configuration.at("depth")},
                    {"y", percent}});
  }
  if (rows.empty()) return {};
  std::string caption =
      "MNIST by plain LN-Nets: test accuracy of each training over the number of norms; 20,000 steps on the "
      "pixels, 40,000 on components.";
  if (!failed.empty()) caption += fmt::format(" Not drawn, as they failed: {}.", fmt::join(failed, ", "));
  return {
      {"depth", std::move(caption), vega::points(std::move(rows), {.x = "norms", .y = "test accuracy, %"})}};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-mnist",
    .paper = "Winsor 2022",
    .claim = "A net whose only nonlinearity is LayerNorm solves MNIST.",
    .quick_seconds = 10,
    .full_minutes = 60,
    .scale =
        {.paper = "one sentence; width, depth and accuracy are not stated",
         .ours =
             "widths 16 to 128, 2 to 8 norms, 6000 or 20,000 steps of 100 images; width 32, 4 to 32 norms, "
             "40,000 steps, on 80 principal components; of these 25 the best on 10,000 images of the "
             "training "
             "set"},
    .plan = plan,
    .perform = ln_nets::train_on_digits,
    .claims =
        {{.name = "solved",
          .says = "With plain LayerNorm the net classifies digits.",
          .paper = "\"solves MNIST\"; width and accuracy are not given",
          .rule = {"share of the test images that the shape chosen by validation classifies", Test::mean,
                   least_seeds, reads_digits, linear_map},
          .judge = solved},
         as_ours({.name = "solved_in_groups",
                  .says = "With LayerNorm in 16 groups it classifies digits.",
                  .paper = "ours; by Ni et al., groups amplify the nonlinearity",
                  .rule = {"share of the test images that are classified", Test::mean, least_seeds,
                           reads_digits, linear_map},
                  .judge = solved_in_groups}),
         {.name = "norm_adds",
          .says = "LayerNorm is better than no nonlinearity.",
          .paper = "implied",
          .rule = {"share of the test images that the shape chosen by validation classifies, minus that "
                   "of the linear net",
                   Test::mean, least_seeds, 0.01, 0.0},
          .judge = norm_adds}},
    .figures = figures};

}  // namespace normscope::lab::winsor_mnist
