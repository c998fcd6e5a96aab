#include <fmt/core.h>

#include "frame/experiment.hpp"
#include "frame/figures.hpp"
#include "ln_nets/digits.hpp"

// Depth beside width: the rule was fixed after winsor-mnist and before these seeds.
namespace normscope::lab::winsor_depth {
namespace {

constexpr std::size_t least_seeds = 6;
constexpr std::size_t few = 4;
constexpr std::size_t many = 16;
constexpr std::size_t narrow = 16;
constexpr std::size_t wide = 64;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1 : least_seeds};
  for (const std::size_t width : {narrow, wide}) {
    for (const std::size_t depth : {few, many}) {
      if (!quick || (width == narrow && depth == few))
        plan.configurations.push_back(ln_nets::deep_digits(size, width, depth, 40000));
    }
  }
  return plan;
}

/// The test accuracy at one value of a setting minus that at another, at each value of the other setting, and
/// the mean of both differences in each seed.
Finding gain(const Results& results, const char* key, std::size_t less, std::size_t more, const char* other) {
  Finding finding;
  std::vector<std::vector<double>> all;
  for (const Json& fixed : results.all(other)) {
    const Results there = results.where(other, fixed);
    const auto accuracy = [](const Done& run) { return run.last("test_accuracy"); };
    const Results one = there.where(key, less);
    const Results two = there.where(key, more);
    if (one.runs().empty() || two.runs().empty()) return {"not run"};
    const Results::Paired paired = Results::paired(one, two, accuracy);
    finding.ours +=
        fmt::format("{}{} {}: {:.2f} % with {} {}, {:.2f} % with {}", finding.ours.empty() ? "" : "; ", other,
                    fixed.get<std::size_t>(), 100.0 * one.spread(accuracy).mean, key, less,
                    100.0 * two.spread(accuracy).mean, more);
    all.push_back(paired.differences);
  }
  if (all.size() != 2 || all[0].size() != all[1].size()) return {"not run"};
  for (std::size_t i = 0; i < all[0].size(); ++i) finding.effects.push_back(0.5 * (all[0][i] + all[1][i]));
  return finding;
}

Finding depth_helps(const Results& results) { return gain(results, "depth", few, many, "width"); }
Finding width_does_not(const Results& results) { return gain(results, "width", narrow, wide, "depth"); }

Finding more_than_width(const Results& results) {
  const Finding depth = depth_helps(results);
  const Finding width = width_does_not(results);
  if (depth.effects.empty() || depth.effects.size() != width.effects.size()) return {"not run"};
  Finding finding;
  double sums[2] = {};
  for (std::size_t i = 0; i < depth.effects.size(); ++i) {
    finding.effects.push_back(depth.effects[i] - width.effects[i]);
    sums[0] += 100.0 * depth.effects[i] / static_cast<double>(depth.effects.size());
    sums[1] += 100.0 * width.effects[i] / static_cast<double>(depth.effects.size());
  }
  finding.ours = fmt::format("four times the norms: {:+.2f} points; four times the width: {:+.2f} points",
                             sums[0], sums[1]);
  return finding;
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "winsor-depth",
    .paper = "Winsor 2022",
    .claim = "Plain LN-Nets on MNIST: norms beside width, as one scalar a norm suggests.",
    .quick_seconds = 5,
    .full_minutes = 6,
    .scale = {.paper = "one sentence; width, depth and accuracy are not stated",
              .ours =
                  "widths 16 and 64, 4 and 16 norms, 40,000 steps of 100 images on 80 principal components"},
    .plan = plan,
    .perform = ln_nets::train_on_digits,
    .claims = {as_ours({.name = "depth_helps",
                        .says = "Four times the norms classify more digits.",
                        .paper = "ours",
                        .rule = {"seeds from 401 on: test accuracy with 16 norms minus that with 4, mean of "
                                 "widths 16 and 64",
                                 Test::mean, least_seeds, 0.003},
                        .judge = depth_helps}),
               as_ours({.name = "width_does_not",
                        .says = "Four times the width changes the accuracy by less than half a point.",
                        .paper = "ours",
                        .rule = {"seeds from 401 on: test accuracy with width 64 minus that with 16, mean of "
                                 "4 and 16 norms",
                                 Test::equivalence, least_seeds, 0.005},
                        .judge = width_does_not}),
               as_ours({.name = "more_than_width",
                        .says = "Norms help more than width.",
                        .paper = "ours",
                        .rule = {"seeds from 401 on: the first difference minus the second", Test::mean,
                                 least_seeds, 0.003},
                        .judge = more_than_width})},
    .figures = nullptr};

}  // namespace normscope::lab::winsor_depth
