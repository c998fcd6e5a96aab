#include <algorithm>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/construct.hpp>

#include "frame/experiment.hpp"

namespace normscope::lab::ni_any_labels {
namespace {

constexpr std::size_t features = 8;
constexpr std::size_t least_seeds = 3;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : least_seeds};
  const std::vector<std::size_t> rows =
      quick ? std::vector<std::size_t>{64, 512} : std::vector<std::size_t>{64, 512, 4096, 20000};
  for (const std::size_t count : rows) {
    for (const std::size_t classes : {2, 10})
      plan.configurations.push_back({{"check", "random labels"}, {"rows", count}, {"classes", classes}});
  }
  for (std::size_t depth = 1; depth <= (quick ? 5U : 10U); ++depth)
    plan.configurations.push_back({{"check", "every labelling"}, {"rows", depth + 2}, {"classes", 2}});
  return plan;
}

std::vector<double> points(std::size_t rows, Random& random) {
  std::vector<double> x(rows * features);
  for (double& value : x) value = random.normal();
  return x;
}

/// Measurements of a construction.
struct Tally {
  std::size_t wrong = 0;
  std::size_t layers = 0;  ///< the most
  std::size_t width = 0;   ///< the most neurons of a layer

  void add(const nets::Construction& made) {
    wrong += made.total - made.correct;
    layers = std::max(layers, made.net.layers.size());
    for (const nets::Layer& layer : made.net.layers) width = std::max(width, layer.out);
  }
};

void perform(Run& run) {
  const auto rows = run.get<std::size_t>("rows");
  Random random(run.seed());
  const std::vector<double> x = points(rows, random);
  const MatrixView<const double> view{x.data(), rows, features};
  const nets::ConstructOptions options{.seed = run.seed(), .threads = 1};
  Tally tally;
  std::vector<std::int64_t> labels(rows);
  if (run.get<std::string>("check") == "random labels") {
    for (std::int64_t& label : labels)
      label = static_cast<std::int64_t>(random.below(run.get<std::uint64_t>("classes")));
    tally.add(nets::construct(view, labels, options));
  } else {
    for (std::uint64_t labelling = 0; labelling < std::uint64_t{1} << rows; ++labelling) {
      for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<std::int64_t>(labelling >> i & 1U);
      tally.add(nets::construct(view, labels, options));
    }
  }
  run.measure("wrong", 1, static_cast<double>(tally.wrong));
  run.measure("layers", 1, static_cast<double>(tally.layers));
  run.measure("width", 1, static_cast<double>(tally.width));
}

/// Every row correct, three neurons per layer, at most rows − `classes` layers.
bool is_so(const Done& run) {
  const double most =
      run.configuration.at("rows").get<double>() - run.configuration.at("classes").get<double>();
  return run.last("wrong") == 0.0 && run.last("width") <= 3.0 && run.last("layers") <= most;
}

Finding any_labels(const Results& results, std::size_t classes) {
  const Results runs = results.where("check", "random labels").where("classes", classes);
  if (runs.runs().empty()) return {"not run"};
  std::string ours;
  for (const Json& rows : runs.all("rows")) {
    const Results some = runs.where("rows", rows);
    ours += fmt::format("{}{:.0f} wrong of {} with at most {:.0f} layers", ours.empty() ? "" : ", ",
                        some.last("wrong").most, rows.get<std::size_t>(), some.last("layers").most);
  }
  ours += fmt::format("; width {:.0f}", runs.last("width").most);
  return {std::move(ours), runs.numbers([](const Done& run) { return is_so(run) ? 1.0 : 0.0; })};
}

Finding two_classes(const Results& results) { return any_labels(results, 2); }

Finding ten_classes(const Results& results) { return any_labels(results, 10); }

Finding shatters(const Results& results) {
  const Results runs = results.where("check", "every labelling");
  if (runs.runs().empty()) return {"not run"};
  double deepest = 0.0;
  for (const Done& run : runs.runs()) {
    deepest = std::max(deepest, run.configuration.at("rows").get<double>() - 2.0);
  }
  std::string ours = fmt::format("{} of {} sets of L + 2 points shattered, L up to {:.0f}, {} seeds",
                                 std::count_if(runs.runs().begin(), runs.runs().end(), is_so),
                                 runs.runs().size(), deepest, runs.seeds());
  return {std::move(ours), runs.numbers([](const Done& run) { return is_so(run) ? 1.0 : 0.0; })};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-any-labels",
    .paper = "Ni 2024",
    .claim =
        "For any labels of m samples there is an LN-Net of width 3 with O(m) layers that fits them: "
        "constructed, and evaluated by independent code.",
    .quick_seconds = 2,
    .full_minutes = 2,
    .scale = {.paper = "a theorem, of any size",
              .ours = "64 to 20,000 samples of 8 features; depths of up to 10"},
    .plan = plan,
    .perform = perform,
    .claims =
        {{.name = "two_classes",
          .says = "Two classes: width 3 and at most m - 2 layers.",
          .paper = "Algorithm 1: width 3, O(m) layers",
          .rule = {"no row wrong, at most 3 neurons a layer and m - 2 layers, m = 64 to 20,000, each of at "
                   "least 3 seeds",
                   Test::every_case, least_seeds},
          .judge = two_classes},
         {.name = "ten_classes",
          .says = "Ten classes: width 3 and O(m) layers.",
          .paper = "the theorem for several classes: O(m) layers",
          .rule = {"no row wrong, at most 3 neurons a layer and m - 10 layers, m = 64 to 20,000, each of at "
                   "least 3 seeds",
                   Test::every_case, least_seeds},
          .judge = ten_classes},
         {.name = "shatters",
          .says = "LN-Nets of width 3 and depth L shatter L + 2 points, so their VC dimension is no less.",
          .paper = "VC dimension of at least L + 2 (the talk's slides)",
          .rule = {"all 2^(L+2) labellings of L + 2 random points by at most L layers of 3 neurons, L = 1 to "
                   "10, each of at least 3 seeds",
                   Test::every_case, least_seeds},
          .judge = shatters}},
    .figures = nullptr};

}  // namespace normscope::lab::ni_any_labels
