#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/results/figures/vega.hpp>

#include "frame/experiment.hpp"

// One norm, one scalar: a plain LN-Net is a linear classifier on its input and one scalar a norm.
// docs/results/one_norm.md has the proofs.
namespace normscope::lab::ni_one_scalar {
namespace {

constexpr std::size_t features = 6;
constexpr std::size_t deepest = 5;
constexpr std::size_t deepest_turns = 10;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1U : 5U};
  for (std::size_t depth = 1; depth <= (quick ? 2U : deepest); ++depth) {
    for (const std::size_t width : {3, 8, 32}) {
      plan.configurations.push_back({{"check", "random nets"},
                                     {"depth", depth},
                                     {"width", width},
                                     {"nets", quick ? 5 : 20},
                                     {"points", 1001}});
    }
  }
  for (std::size_t depth = 1; depth <= (quick ? 3U : deepest_turns); ++depth)
    plan.configurations.push_back({{"check", "most turns"}, {"depth", depth}, {"width", 3}});
  return plan;
}

nets::Layer random_layer(std::size_t in, std::size_t out, nets::Activation activation, Random& random) {
  nets::Layer layer{.in = in, .out = out, .activation = activation};
  for (std::size_t i = 0; i < in * out; ++i)
    layer.weight.push_back(random.normal() / std::sqrt(static_cast<double>(in)));
  for (std::size_t i = 0; i < out; ++i) layer.bias.push_back(0.5 * random.normal());
  layer.norm = {.kind = NormKind::layer, .width = out};
  return layer;
}

nets::Net random_net(std::size_t depth, std::size_t width, std::size_t classes, Random& random) {
  nets::Net net;
  for (std::size_t layer = 0; layer < depth; ++layer)
    net.layers.push_back(random_layer(layer == 0 ? features : width, width, nets::Activation::norm, random));
  net.head = random_layer(width, classes, nets::Activation::none, random);
  return net;
}

/// Π W v + t Π b: the centred input of a layer's norm, times t.
std::vector<double> centred(const nets::Layer& layer, const std::vector<double>& v, double t) {
  std::vector<double> u(layer.out);
  double mean = 0.0;
  for (std::size_t o = 0; o < layer.out; ++o) {
    u[o] = t * layer.bias[o];
    for (std::size_t i = 0; i < layer.in; ++i) u[o] += layer.weight[o * layer.in + i] * v[i];
    mean += u[o] / static_cast<double>(layer.out);
  }
  for (double& value : u) value -= mean;
  return u;
}

/// The outputs of the head times t_L, without a division: v_l = Π W_l v_(l−1) + t_(l−1) Π b_l, linear in
/// (x, 1, t_1 … t_(l−1)), and t_l its length, from which the next layer goes on.
std::vector<double> by_scalars(const nets::Net& net, std::span<const double> x, double& last) {
  std::vector<double> v(x.begin(), x.end());
  double t = 1.0;
  for (const nets::Layer& layer : net.layers) {
    v = centred(layer, v, t);
    double squares = 0.0;
    for (const double value : v) squares += value * value;
    t = std::sqrt(squares / static_cast<double>(layer.out) + layer.norm.eps * t * t);
  }
  last = t;
  std::vector<double> outputs(net.head.out);
  for (std::size_t o = 0; o < net.head.out; ++o) {
    outputs[o] = t * net.head.bias[o];
    for (std::size_t i = 0; i < net.head.in; ++i) outputs[o] += net.head.weight[o * net.head.in + i] * v[i];
  }
  return outputs;
}

/// How often the larger of two outputs changes from one row to the next.
std::size_t turns(const std::vector<double>& outputs) {
  std::size_t found = 0;
  for (std::size_t row = 1; 2 * row < outputs.size(); ++row) {
    const bool here = outputs[2 * row] < outputs[2 * row + 1];
    const bool before = outputs[2 * row - 2] < outputs[2 * row - 1];
    found += here == before ? 0 : 1;
  }
  return found;
}

/// Points from far to far: at tan of equally spaced angles.
std::vector<double> places(std::size_t count) {
  std::vector<double> all;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    all.push_back(4.0 * std::tan(3.141592653589793 * (share - 0.5)));
  }
  return all;
}

std::vector<double> normal(std::size_t count, Random& random) {
  std::vector<double> values(count);
  for (double& value : values) value = random.normal();
  return values;
}

/// The net whose parameters are those of `one` + s · those of `other`.
nets::Net between(const nets::Net& one, const nets::Net& other, double s) {
  nets::Net net = one;
  const auto move = [s](nets::Layer& layer, const nets::Layer& by) {
    for (std::size_t i = 0; i < layer.weight.size(); ++i) layer.weight[i] += s * by.weight[i];
    for (std::size_t i = 0; i < layer.bias.size(); ++i) layer.bias[i] += s * by.bias[i];
  };
  for (std::size_t layer = 0; layer < net.layers.size(); ++layer)
    move(net.layers[layer], other.layers[layer]);
  move(net.head, other.head);
  return net;
}

void random_nets(Run& run) {
  Random random(run.seed());
  const auto depth = run.get<std::size_t>("depth");
  const auto width = run.get<std::size_t>("width");
  const std::vector<double> s = places(run.get<std::size_t>("points"));
  double off = 0.0;
  std::size_t on_lines = 0;
  std::size_t of_parameters = 0;
  for (std::size_t i = 0; i < run.get<std::size_t>("nets"); ++i) {
    const nets::Net net = random_net(depth, width, 2, random);
    const std::vector<double> from = normal(features, random);
    const std::vector<double> along = normal(features, random);
    std::vector<double> x;
    for (const double place : s) {
      for (std::size_t j = 0; j < features; ++j) x.push_back(from[j] + place * along[j]);
    }
    const std::vector<double> outputs = nets::evaluate(net, {x.data(), s.size(), features}, 1);
    on_lines = std::max(on_lines, turns(outputs));
    for (std::size_t row = 0; row < s.size(); ++row) {
      double t = 0.0;
      const std::vector<double> scaled = by_scalars(net, {x.data() + row * features, features}, t);
      for (std::size_t o = 0; o < 2; ++o)
        off = std::max(
            off, std::abs(scaled[o] / t - outputs[2 * row + o]) / (1.0 + std::abs(outputs[2 * row + o])));
    }
    // Along a line of parameters, at one input, it is the same.
    const nets::Net other = random_net(depth, width, 2, random);
    std::vector<double> moved;
    for (const double place : s) {
      double t = 0.0;
      const std::vector<double> scaled = by_scalars(between(net, other, place), from, t);
      moved.insert(moved.end(), scaled.begin(), scaled.end());
    }
    of_parameters = std::max(of_parameters, turns(moved));
  }
  run.measure("off", 1, off);
  run.measure("turns", 1, static_cast<double>(on_lines));
  run.measure("turns_of_parameters", 1, static_cast<double>(of_parameters));
}

/// U (p, q): neurons orthogonal to all-ones, which LN turns into √3 U (p, q)/|(p, q)|.
constexpr double first_axis[] = {0.7071067811865476, -0.7071067811865476, 0.0};
constexpr double second_axis[] = {0.4082482904638631, 0.4082482904638631, -0.8164965809277261};

/// The layer (p, q) -> M (p, q) + c of the plane, between neurons.
nets::Layer plane_layer(const std::array<double, 4>& m, const std::array<double, 2>& c) {
  nets::Layer layer{.in = 3, .out = 3, .activation = nets::Activation::norm};
  for (std::size_t o = 0; o < 3; ++o) {
    for (std::size_t i = 0; i < 3; ++i) {
      const double value = first_axis[o] * (m[0] * first_axis[i] + m[1] * second_axis[i]) +
                           second_axis[o] * (m[2] * first_axis[i] + m[3] * second_axis[i]);
      layer.weight.push_back(value / std::sqrt(3.0));
    }
    layer.bias.push_back(c[0] * first_axis[o] + c[1] * second_axis[o]);
  }
  layer.norm = {.kind = NormKind::layer, .width = 3, .eps = 0.0};
  return layer;
}

/// A net of width 3 on one feature whose answer changes at x near ±2^(L−1) ± … ± 2 ± 1: with v_1 = (x, δ) and
/// v_(l+1) = (t_l − 2^(L−l), δ), t_l is nearly |v_l1|, and the answer is whether t_L > 1.
nets::Net zigzag(std::size_t depth) {
  constexpr double delta = 0.1;
  nets::Net net;
  nets::Layer first{.in = 1, .out = 3, .activation = nets::Activation::norm};
  for (std::size_t o = 0; o < 3; ++o) {
    first.weight.push_back(first_axis[o]);
    first.bias.push_back(delta * second_axis[o]);
  }
  first.norm = {.kind = NormKind::layer, .width = 3, .eps = 0.0};
  net.layers.push_back(first);
  for (std::size_t layer = 1; layer < depth; ++layer) {
    const double fold = std::exp2(static_cast<double>(depth - layer));
    net.layers.push_back(plane_layer({0.0, -fold / delta, 0.0, 1.0}, {1.0, 0.0}));
  }
  net.head = {.in = 3, .out = 2, .weight = std::vector<double>(6), .bias = {0.0, 1.0}};
  for (std::size_t i = 0; i < 3; ++i) net.head.weight[3 + i] = -second_axis[i] / std::sqrt(3.0) / delta;
  return net;
}

void most_turns(Run& run) {
  const auto depth = run.get<std::size_t>("depth");
  const auto last = static_cast<std::int64_t>(std::size_t{1} << depth);
  std::vector<double> x;
  for (std::int64_t place = -last; place <= last; place += 2) x.push_back(static_cast<double>(place));
  const std::vector<double> outputs = nets::evaluate(zigzag(depth), {x.data(), x.size(), 1}, 1);
  run.measure("turns", 1, static_cast<double>(turns(outputs)));
}

void perform(Run& run) {
  run.get<std::string>("check") == "random nets" ? random_nets(run) : most_turns(run);
  run.reached(1, 1, [] { return Bytes{}; });
}

Finding linear(const Results& results) {
  const Results runs = results.where("check", "random nets");
  if (runs.runs().empty()) return {"not run"};
  return {fmt::format("largest difference of an output {:.1e}, relative to 1 + its size; widths 3, 8, 32, "
                      "{} runs",
                      runs.last("off").most, runs.runs().size()),
          runs.numbers([](const Done& run) { return run.last("off") <= 1e-9 ? 1.0 : 0.0; })};
}

/// The most changes of the answer by depth, beside a bound.
Finding at_most(const Results& results, const char* metric, double (*bound)(double depth)) {
  const Results runs = results.where("check", "random nets");
  if (runs.runs().empty()) return {"not run"};
  Finding finding;
  for (const Json& depth : runs.all("depth")) {
    const Spread seen = runs.where("depth", depth).last(metric);
    finding.ours +=
        fmt::format("{}{:.0f} with L = {} (bound {:.0f})", finding.ours.empty() ? "at most " : ", ",
                    seen.most, depth.get<std::size_t>(), bound(depth.get<double>()));
    finding.effects.push_back(seen.most <= bound(depth.get<double>()) ? 1.0 : 0.0);
  }
  return finding;
}

Finding turns_bounded(const Results& results) {
  return at_most(results, "turns", [](double depth) { return std::exp2(depth); });
}
Finding parameters_bounded(const Results& results) {
  return at_most(results, "turns_of_parameters",
                 [](double depth) { return (depth + 1.0) * std::exp2(depth); });
}

Finding turns_attained(const Results& results) {
  const Results runs = results.where("check", "most turns");
  if (runs.runs().empty()) return {"not run"};
  Finding finding;
  for (const Json& depth : runs.all("depth")) {
    const double seen = runs.where("depth", depth).last("turns").least;
    finding.ours += fmt::format("{}{:.0f}", finding.ours.empty() ? "" : ", ", seen);
    finding.effects.push_back(seen == std::exp2(depth.get<double>()) ? 1.0 : 0.0);
  }
  finding.ours += fmt::format(" changes with L = 1 … {}, width 3", runs.all("depth").size());
  return finding;
}

Finding capacity(const Results&) {
  std::string ours;
  bool above = true;
  for (const double depth : {1.0, 2.0, 8.0, 24.0}) {
    constexpr double width = 32.0;
    constexpr double inputs = 80.0;
    const double parameters = width * (inputs + 1.0) + (depth - 1.0) * width * (width + 1.0) + width + 1.0;
    const double bound = 2.0 * parameters * (depth + std::log2(depth + 1.0) + std::log2(4.0 * std::exp(1.0)));
    ours +=
        fmt::format("{}L = {:.0f}: {:.0f} parameters, at most {:.0f}, at least {:.0f}",
                    ours.empty() ? "width 32 on 80 inputs: " : "; ", depth, parameters, bound, depth + 2.0);
    above = above && bound >= depth + 2.0;
  }
  return {std::move(ours), one_case(above)};
}

std::vector<Figure> figures(const Results& results) {
  Json rows = Json::array();
  const auto add = [&](const char* series, const Json& depth, double y) {
    rows.push_back({{"series", series}, {"x", depth}, {"y", y}});
  };
  const Results random = results.where("check", "random nets");
  for (const Json& depth : random.all("depth")) {
    const Results there = random.where("depth", depth);
    for (const Json& width : there.all("width")) {
      const std::string name = fmt::format("random nets, width {}", width.get<std::size_t>());
      add(name.c_str(), depth, there.where("width", width).last("turns").most);
    }
  }
  const Results made = results.where("check", "most turns");
  for (const Json& depth : made.all("depth"))
    add("constructed, width 3 (the bound 2^L)", depth, made.where("depth", depth).last("turns").least);
  Json specification = vega::curves(
      std::move(rows), {.x = "norms L", .y = "changes of the answer on a line", .logarithmic_y = true});
  specification["encoding"]["x"]["axis"] = {{"format", "d"}};
  return {
      {"turns",
       "How often the answer of an LN-Net changes along a straight line: a net constructed to do so as often "
       "as the bound allows, and the most that 100 random nets of each depth and width do.",
       std::move(specification)}};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "ni-one-scalar",
    .paper = "Ni 2024",
    .claim =
        "A plain LN-Net is a linear classifier on its input and one scalar a norm, whatever its width: depth "
        "bounds what it can tell apart.",
    .quick_seconds = 1,
    .full_minutes = 0.5,
    .scale = {.paper = "a lower bound of the VC dimension",
              .ours =
                  "20 random nets of each of three widths and five depths in each of five seeds; constructed "
                  "nets of up to ten norms"},
    .plan = plan,
    .perform = perform,
    .claims =
        {as_ours(
             {.name = "linear_in_scalars",
              .says = "Multiplied by t_L, the outputs of an LN-Net with L norms are linear in (x, 1, t_1 … "
                      "t_L), t_l the length of a linear map of (x, 1, t_1 … t_(l−1)).",
              .paper = "no such statement",
              .rule = {"outputs computed so, without a division, and those of nets::evaluate differ by at "
                       "most 1e-9 of 1 + their size, in every run",
                       Test::every_case, 5},
              .judge = linear}),
         as_ours({.name = "turns_bounded",
                  .says =
                      "Along a straight line the answer of a net of two classes changes at most 2^L times, "
                      "whatever its width.",
                  .paper = "no such statement",
                  .rule = {"no random net changes its answer more often at 1001 points of a random line",
                           Test::every_case, 5},
                  .judge = turns_bounded}),
         as_ours(
             {.name = "turns_attained",
              .says = "Width 3 is enough to change it 2^L times.",
              .paper = "no such statement; the paper's VC dimension of L + 2 follows from folds too",
              .rule = {"the constructed net gives 2^L + 1 points of a line alternating labels, L = 1 to 10"},
              .judge = turns_attained}),
         as_ours(
             {.name = "parameters_bounded",
              .says = "Along a line of parameters the answer at one input changes at most (L + 1) 2^L times.",
              .paper = "no such statement",
              .rule =
                  {"no pair of random nets changes its answer more often at 1001 points between and beyond "
                   "them",
                   Test::every_case, 5},
              .judge = parameters_bounded}),
         as_ours(
             {.name = "capacity",
              .says =
                  "The VC dimension of LN-Nets with P parameters and L norms is at most 2 P (L + log2(L + 1) "
                  "+ log2(4e)); on one feature at most 2^L + 1.",
              .paper = "at least L + 2 (the talk's slides)",
              .rule = {"a proof, in docs/results/one_norm.md; the bound is above L + 2"},
              .judge = capacity})},
    .figures = figures};

}  // namespace normscope::lab::ni_one_scalar
