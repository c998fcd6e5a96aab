#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/random.hpp>
#include <normscope/results/figures/vega.hpp>
#include <normscope/selectability/logits.hpp>
#include <normscope/signature/extract.hpp>

#include "dense/eigen.hpp"
#include "dense/least_squares.hpp"
#include "frame/experiment.hpp"

// How long it takes to find the ellipse of a model in its outputs, over the model's width.
namespace normscope::lab::finlayson_growth {
namespace {

/// Widths from which the exponent of our time is fitted, and up to which there is a dense solve.
constexpr std::size_t ours_from = 64;
constexpr std::size_t dense_from = 32;
constexpr std::size_t dense_to = 64;
constexpr std::size_t least_seeds = 3;

Plan plan(Size size) {
  const bool quick = size == Size::quick;
  Plan plan{.configurations = {}, .seeds = quick ? 1U : least_seeds};
  const std::vector<std::size_t> widths =
      quick ? std::vector<std::size_t>{8, 16} : std::vector<std::size_t>{32, 48, 64, 96, 128, 192};
  for (const std::size_t width : widths)
    plan.configurations.push_back({{"width", width}, {"tokens", 2 * width}, {"rows_per_unknown", 2}});
  return plan;
}

/// An unembedding behind an RMSNorm with gains e^(0.5 z).
struct Head {
  NormSpec norm{};
  std::vector<double> unembedding{};
  std::size_t tokens = 0;
};

Head random_head(std::size_t width, std::size_t tokens, Random& random) {
  Head head{.norm = {.kind = NormKind::rms, .width = width, .eps = 0.0}, .tokens = tokens};
  for (std::size_t i = 0; i < width; ++i) head.norm.gain.push_back(std::exp(0.5 * random.normal()));
  for (std::size_t i = 0; i < tokens * width; ++i)
    head.unembedding.push_back(random.normal() / std::sqrt(static_cast<double>(width)));
  return head;
}

/// Logits in float32 of inputs with uneven variances and means.
std::vector<float> outputs_of(const Head& head, std::size_t rows, Random& random) {
  const std::size_t width = head.norm.width;
  std::vector<float> values;
  values.reserve(rows * head.tokens);
  std::vector<double> input(width);
  for (std::size_t row = 0; row < rows; ++row) {
    double squares = 0.0;
    for (std::size_t i = 0; i < width; ++i) {
      input[i] = std::pow(1.0 + static_cast<double>(i), -0.3) * (random.normal() + 0.3);
      squares += input[i] * input[i];
    }
    const double scale = std::sqrt(static_cast<double>(width) / squares);
    for (std::size_t i = 0; i < width; ++i) input[i] *= scale * head.norm.gain[i];
    for (std::size_t token = 0; token < head.tokens; ++token) {
      const double* weights = head.unembedding.data() + token * width;
      double logit = 0.0;
      for (std::size_t i = 0; i < width; ++i) logit += weights[i] * input[i];
      values.push_back(static_cast<float>(logit));
    }
  }
  return values;
}

signature::Outputs opened(const std::vector<float>& values, std::size_t tokens) {
  files::StoredArray array{.shape = {values.size() / tokens, tokens}, .dtype = Dtype::F32};
  array.fetch = [&values](std::vector<std::byte>&) { return std::as_bytes(std::span(values)); };
  return {files::OpenedArray("outputs", std::move(array)), std::nullopt, {}};
}

/// Largest relative difference of semi-axes, both descending.
double worst_of(const std::vector<double>& found, const std::vector<double>& true_ones) {
  if (found.size() != true_ones.size()) return 1.0;
  double worst = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(found[i] / true_ones[i] - 1.0));
  return worst;
}

/// The semi-axes from the least squares with one column for each entry of the symmetric matrix M and the
/// vector v of xᵀMx + v·x = 1, x the coordinates in the subspace over their deviations.
std::vector<double> dense_semi_axes(const std::vector<float>& values, const signature::Subspace& subspace) {
  const std::size_t tokens = subspace.tokens;
  const std::size_t rank = subspace.rank;
  const std::size_t rows = values.size() / tokens;
  const std::size_t columns = signature::unknowns(rank);
  std::vector<double> matrix(rows * columns);
  std::vector<double> x(rank);
  for (std::size_t row = 0; row < rows; ++row) {
    const float* logits = values.data() + row * tokens;
    double middle = 0.0;
    for (std::size_t token = 0; token < tokens; ++token)
      middle += static_cast<double>(logits[token]) / static_cast<double>(tokens);
    std::fill(x.begin(), x.end(), 0.0);
    for (std::size_t token = 0; token < tokens; ++token) {
      const double off = static_cast<double>(logits[token]) - middle - subspace.middle[token];
      for (std::size_t i = 0; i < rank; ++i) x[i] += off * subspace.basis[token * rank + i];
    }
    for (std::size_t i = 0; i < rank; ++i) x[i] /= subspace.singular_values[i];
    double* to = matrix.data() + row * columns;
    for (std::size_t i = 0; i < rank; ++i) {
      for (std::size_t j = i; j < rank; ++j) *to++ = x[i] * x[j];
    }
    std::copy(x.begin(), x.end(), to);
  }
  const std::vector<double> solution =
      dense::least_squares({matrix.data(), rows, columns}, std::vector<double>(rows, 1.0));
  std::vector<double> quadric(rank * rank);
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    for (std::size_t j = i; j < rank; ++j) {
      const double entry = solution[next++] * (i == j ? 1.0 : 0.5);
      quadric[i * rank + j] = quadric[j * rank + i] = entry;
    }
  }
  // The centre c solves 2 M c = −v, and (x − c)ᵀM(x − c) = 1 + cᵀMc = 1 − v·c/2.
  std::vector<double> right(solution.begin() + static_cast<std::ptrdiff_t>(next), solution.end());
  double level = 1.0;
  for (double& value : right) value *= -0.5;
  const std::vector<double> centre = dense::least_squares({quadric.data(), rank, rank}, right);
  for (std::size_t i = 0; i < rank; ++i) level += right[i] * centre[i];
  for (std::size_t i = 0; i < rank; ++i) {
    for (std::size_t j = 0; j < rank; ++j)
      quadric[i * rank + j] /= level * subspace.singular_values[i] * subspace.singular_values[j];
  }
  const std::vector<double> inverse_squares = dense::symmetric_eigen(std::move(quadric), rank).values;
  std::vector<double> lengths;
  for (auto value = inverse_squares.rbegin(); value != inverse_squares.rend(); ++value)
    lengths.push_back(1.0 / std::sqrt(*value));
  return lengths;
}

double processor_seconds() { return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC); }

void perform(Run& run) {
  const auto width = run.get<std::size_t>("width");
  const auto tokens = run.get<std::size_t>("tokens");
  const std::size_t rows = run.get<std::size_t>("rows_per_unknown") * signature::unknowns(width);
  Random random(run.seed());
  const Head head = random_head(width, tokens, random);
  const std::vector<double> true_axes =
      signature::ellipse_of(selectability::fold(head.norm, {head.unembedding.data(), tokens, width}, {}), 1)
          .semi_axes;
  const std::vector<float> values = outputs_of(head, rows, random);
  const signature::Outputs outputs = opened(values, tokens);

  const double begin = processor_seconds();
  const signature::Subspace subspace = signature::find_subspace(outputs, 1);
  const signature::Extraction found = signature::extract(outputs, subspace, {.threads = 1});
  run.measure("seconds", 1, processor_seconds() - begin);
  run.measure("rows", 1, static_cast<double>(rows));
  run.measure("iterations", 1, static_cast<double>(found.rounds));
  run.measure("worst_axis", 1, found.ellipse ? worst_of(found.ellipse->semi_axes, true_axes) : 1.0);
  if (width > dense_to) return;
  const double dense_begin = processor_seconds();
  const std::vector<double> dense_axes = dense_semi_axes(values, subspace);
  run.measure("dense_seconds", 1, processor_seconds() - dense_begin);
  run.measure("dense_worst_axis", 1, worst_of(dense_axes, true_axes));
}

/// Slope of the line through the logarithms, by least squares, for each seed.
std::map<std::uint64_t, double> exponents(const Results& results, const char* metric, std::size_t from) {
  std::map<std::uint64_t, std::vector<std::pair<double, double>>> points;
  for (const Done& run : results.runs()) {
    const auto width = run.configuration.at("width").get<std::size_t>();
    if (width >= from && run.has(metric))
      points[run.seed].emplace_back(std::log(static_cast<double>(width)), std::log(run.last(metric)));
  }
  std::map<std::uint64_t, double> slopes;
  for (const auto& [seed, of] : points) {
    if (of.size() < 2) continue;
    double x = 0.0;
    double y = 0.0;
    for (const auto& [log_width, log_time] : of) {
      x += log_width / static_cast<double>(of.size());
      y += log_time / static_cast<double>(of.size());
    }
    double both = 0.0;
    double squares = 0.0;
    for (const auto& [log_width, log_time] : of) {
      both += (log_width - x) * (log_time - y);
      squares += (log_width - x) * (log_width - x);
    }
    slopes[seed] = both / squares;
  }
  return slopes;
}

double mean_of(const std::map<std::uint64_t, double>& slopes) {
  double sum = 0.0;
  for (const auto& [seed, slope] : slopes) sum += slope / static_cast<double>(slopes.size());
  return sum;
}

Finding below_published(const Results& results) {
  const auto slopes = exponents(results, "seconds", ours_from);
  if (slopes.empty()) return {"not run"};
  Finding finding;
  for (const auto& [seed, slope] : slopes) finding.effects.push_back(6.0 - slope);
  const auto seconds = [&](std::size_t width) { return results.where("width", width).last("seconds").mean; };
  finding.ours =
      fmt::format("processor time grows as width^{:.2f}, from {:.2g} s at width 64 to {:.3g} s at width 192",
                  mean_of(slopes), seconds(64), seconds(192));
  return finding;
}

Finding dense_grows_faster(const Results& results) {
  const auto ours = exponents(results, "seconds", ours_from);
  const auto dense = exponents(results, "dense_seconds", dense_from);
  if (ours.empty() || dense.empty()) return {"not run"};
  Finding finding{.ours = fmt::format("width^{:.2f} from width 32 to 64, ours width^{:.2f}", mean_of(dense),
                                      mean_of(ours))};
  for (const auto& [seed, slope] : dense) {
    if (ours.contains(seed)) finding.effects.push_back(slope - ours.at(seed));
  }
  return finding;
}

Finding iterations_stay(const Results& results) {
  const auto iterations = [](const Done& run) { return run.last("iterations"); };
  const Results narrow = results.where("width", 32);
  const Results wide = results.where("width", 192);
  if (narrow.runs().empty() || wide.runs().empty()) return {"not run"};
  Finding finding{.ours = fmt::format("{:.1f} iterations at width 32, {:.1f} at width 192",
                                      narrow.spread(iterations).mean, wide.spread(iterations).mean)};
  for (const Done& one : narrow.runs()) {
    for (const Done& other : wide.runs()) {
      if (one.seed == other.seed) finding.effects.push_back(iterations(other) / iterations(one) - 1.0);
    }
  }
  return finding;
}

Finding axes_found(const Results& results) {
  if (results.runs().empty()) return {"not run"};
  return {fmt::format("largest relative error of a semi-axis {:.1e}, {} runs",
                      results.last("worst_axis").most, results.runs().size()),
          results.numbers([](const Done& run) { return run.last("worst_axis") <= 1e-6 ? 1.0 : 0.0; })};
}

std::vector<Figure> figures(const Results& results) {
  Json rows = Json::array();
  const auto add = [&](const char* series, double width, double seconds) {
    rows.push_back({{"series", series}, {"x", width}, {"y", seconds}});
  };
  double first = 0.0;
  for (const Json& width : results.all("width")) {
    const Results there = results.where("width", width);
    const auto x = width.get<double>();
    const double ours = there.last("seconds").mean;
    if (first == 0.0) first = ours / std::pow(x, 6.0);
    add("Normscope", x, ours);
    add("width⁶ from the same beginning", x, first * std::pow(x, 6.0));
    if (there.runs().front().has("dense_seconds"))
      add("dense least squares", x, there.last("dense_seconds").mean);
  }
  return {
      {"seconds",
       "Processor seconds to find the ellipse of a model in its outputs, by width; mean of the seeds. The "
       "published growth, width⁶, is drawn from our first point.",
       vega::curves(std::move(rows),
                    {.x = "width", .y = "processor seconds", .logarithmic_x = true, .logarithmic_y = true})}};
}

}  // namespace

extern const Experiment experiment;
const Experiment experiment{
    .name = "finlayson-growth",
    .paper = "Finlayson 2026",
    .claim = "The ellipse on which a model's outputs lie can be found in them, for small models.",
    .quick_seconds = 1,
    .full_minutes = 3,
    .scale = {.paper = "production models, by summaries of the paper",
              .ours = "random heads of widths 32 to 192 with twice as many tokens, one processor"},
    .plan = plan,
    .perform = perform,
    .claims = {{.name = "axes_found",
                .says = "The ellipse can be found in outputs alone.",
                .paper = "abstract: a technique for small models",
                .rule = {"seeds from 601 on: every semi-axis from twice as many float32 outputs as unknowns "
                         "is within 1e-6 of that of the weights",
                         Test::every_case, least_seeds},
                .judge = axes_found,
                .measured = true},
               as_ours({.name = "below_published",
                        .says = "The time grows more slowly than with the sixth power of the width.",
                        .paper = "O(d⁶), by summaries of the paper",
                        .rule = {"seeds from 601 on: 6 minus the exponent of processor time over width, "
                                 "fitted to widths 64 to 192",
                                 Test::mean, least_seeds, 1.5},
                        .judge = below_published}),
               as_ours({.name = "dense_grows_faster",
                        .says = "A dense least squares with a column for each unknown grows faster.",
                        .paper = "ours; such a solve takes O(d⁶)",
                        .rule = {"seeds from 601 on: the exponent of its processor time, fitted to widths 32 "
                                 "to 64, minus the first exponent",
                                 Test::mean, least_seeds, 1.0},
                        .judge = dense_grows_faster}),
               as_ours({.name = "iterations_stay",
                        .says = "The number of iterations does not grow with the width.",
                        .paper = "ours",
                        .rule = {"seeds from 601 on: iterations at width 192 over those at width 32, minus 1",
                                 Test::equivalence, least_seeds, 0.2},
                        .judge = iterations_stay})},
    .figures = figures};

}  // namespace normscope::lab::finlayson_growth
