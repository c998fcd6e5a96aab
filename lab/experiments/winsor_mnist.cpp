#include <fmt/core.h>

#include <normscope/lnnet/images.hpp>

#include "frame/data.hpp"
#include "nets/training.hpp"

namespace normscope::lab {
namespace {

using lnnet::Activation;

constexpr std::size_t least_seeds = 3;
constexpr double reads_digits = 0.97;
constexpr double linear_map = 0.9256;
constexpr std::string_view no_search =
    "a search over width, depth, norm and steps with a validation split; four norms of width 16 reach 94.4 "
    "to 95.0 %";

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : least_seeds};
  const auto add = [&](const char* arm, Activation activation, std::size_t groups) {
    Json configuration{{"arm", arm}, {"rows", quick ? 1000 : 60000}};
    configuration.update(nets::to_json({.width = 128,
                                        .depth = 2,
                                        .activation = activation,
                                        .norm = NormKind::layer,
                                        .groups = groups,
                                        .rate = 2e-3,
                                        .schedule = lnnet::Schedule::cosine,
                                        .steps = quick ? 100U : 6000U,
                                        .batch = 100,
                                        .precision = Dtype::F32}));
    plan.configurations.push_back(std::move(configuration));
  };
  add("LN", Activation::norm, 1);
  add("LN in 16 groups", Activation::norm, 16);
  add("linear", Activation::none, 1);
  add("ReLU", Activation::relu, 1);
  return plan;
}

void perform(Run& run) {
  const std::filesystem::path folder = data_file("mnist");
  const auto data = std::make_shared<const lnnet::Dataset>(
      lnnet::mnist(folder, lnnet::Part::train, run.get<std::size_t>("rows")));
  const lnnet::Dataset test = lnnet::mnist(folder, lnnet::Part::test);
  nets::train(run, data, &test);
}

Finding accuracies(const Results& results, const char* arm) {
  const Results runs = results.where("arm", arm);
  if (runs.runs().empty()) return {"not run"};
  const Spread spread = runs.last("test_accuracy");
  std::string ours = fmt::format("{}: test accuracy {:.2f} ± {:.2f} %, {} seeds", arm, 100.0 * spread.mean,
                                 100.0 * spread.deviation, spread.count);
  return {std::move(ours), runs.numbers([](const Done& run) { return run.last("test_accuracy"); })};
}

Finding solved(const Results& results) { return accuracies(results, "LN"); }

Finding solved_in_groups(const Results& results) { return accuracies(results, "LN in 16 groups"); }

Finding norm_adds(const Results& results) {
  const Results norm = results.where("arm", "LN");
  const Results linear = results.where("arm", "linear");
  const Results relu = results.where("arm", "ReLU");
  if (norm.runs().empty() || linear.runs().empty() || relu.runs().empty()) return {"not run"};
  const Results::Paired gain =
      Results::paired(linear, norm, [](const Done& run) { return run.last("test_accuracy"); });
  std::string ours =
      fmt::format("LN − linear {:.2f} ± {:.2f} points; linear {:.2f}, ReLU {:.2f} %",
                  100.0 * gain.difference.mean, 100.0 * gain.difference.deviation,
                  100.0 * linear.last("test_accuracy").mean, 100.0 * relu.last("test_accuracy").mean);
  return {std::move(ours), gain.differences};
}

}  // namespace

namespace experiments {

extern const Experiment winsor_mnist;
const Experiment winsor_mnist{
    .name = "winsor-mnist",
    .paper = "Winsor 2022",
    .claim = "A net whose only nonlinearity is LayerNorm solves MNIST: 784 → 128 → 128 → 10.",
    .quick_seconds = 10,
    .full_minutes = 4,
    .scale = {.paper = "one sentence; width, depth and accuracy are not stated",
              .ours = "one shape, 784 → 128 → 128 → 10, 6000 steps of 100 images"},
    .plan = plan,
    .perform = perform,
    .claims = {{.name = "solved",
                .says = "With plain LayerNorm the net classifies digits.",
                .paper = "\"solves MNIST\"; width and accuracy are not given",
                .rule = {"share of the test images that are classified", Test::mean, least_seeds,
                         reads_digits, linear_map, no_search},
                .judge = solved},
               {.name = "solved_in_groups",
                .says = "With LayerNorm in 16 groups it classifies digits.",
                .paper = "ours; by Ni et al., groups amplify the nonlinearity",
                .rule = {"share of the test images that are classified", Test::mean, least_seeds,
                         reads_digits, linear_map},
                .judge = solved_in_groups},
               {.name = "norm_adds",
                .says = "LayerNorm is better than no nonlinearity.",
                .paper = "implied",
                .rule = {"share of the test images that are classified, minus that of the linear net",
                         Test::mean, least_seeds, 0.01, 0.0, no_search},
                .judge = norm_adds}},
    .figures = nullptr};

}  // namespace experiments
}  // namespace normscope::lab
