#include <normscope/lnnet/construct.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "fold_plan.hpp"
#include "head.hpp"
#include "line.hpp"
#include "paper_mode.hpp"
#include "projection.hpp"
#include "resume.hpp"
#include "samples.hpp"

namespace normscope::lnnet {
namespace {

/// What is tried one after the other: κ for one projection, then the next projection.
constexpr double kappas[] = {1024.0, 64.0};
constexpr std::size_t most_attempts = 10;

struct Attempt {
  Projection projection;
  double kappa = 0.0;
};

class StableConstruction {
 public:
  StableConstruction(const Samples& samples, std::vector<double> x, std::size_t width,
                     const ConstructOptions& options, const Progress& progress)
      : samples_(samples), x_(std::move(x)), width_(width), options_(options), progress_(progress) {}

  /// The net of the attempt, nothing when its precision did not suffice.
  std::optional<Net> run(std::size_t attempt, std::optional<Line> resumed, Construction& construction) {
    const Projection projection = best_projection(
        rows(), samples_.classes, options_.seed + attempt / std::size(kappas), options_.threads);
    if (!(projection.separation > 0.0)) return std::nullopt;
    separable_ = true;
    const double kappa = kappas[attempt % std::size(kappas)];
    Line line = resumed ? std::move(*resumed) : first_line(projection, kappa);
    const FoldRules rules{samples_.names.size(), kappa, options_.early_stop, options_.threads};
    if (!fold(line, rules, attempt)) return std::nullopt;
    Net net;
    net.layers.push_back(first_layer(projection.direction, line.folds.front()));
    for (std::size_t l = 1; l < line.folds.size(); ++l) net.layers.push_back(fold_layer(line.folds[l]));
    net.head = threshold_head(line.q, line.classes, {0.0, 0.0, 1.0}, samples_.names, net.classes);
    construction.folds = std::move(line.folds);
    return net;
  }

  /// Whether some projection kept the classes apart.
  [[nodiscard]] bool separable() const { return separable_; }

 private:
  [[nodiscard]] MatrixView<const double> rows() const { return {x_.data(), samples_.rows.size(), width_}; }

  /// The line after the first layer, which folds the projection itself.
  [[nodiscard]] Line first_line(const Projection& projection, double kappa) const {
    const std::size_t count = samples_.rows.size();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(projection.values[a], a) < std::pair(projection.values[b], b);
    });
    std::vector<double> u;
    std::vector<std::uint32_t> classes;
    for (const std::size_t sample : order) {
      u.push_back(projection.values[sample]);
      classes.push_back(samples_.classes[sample]);
    }
    const FoldPlan plan = plan_fold(u, classes, samples_.names.size(), kappa);
    Fold fold{.midpoint = plan.midpoint, .radius = plan.radius, .gap = plan.gap};
    std::size_t absorbed = no_row;
    if (plan.merges()) {
      absorbed = order[plan.first];
      fold.first = samples_.rows[absorbed];
      fold.second = samples_.rows[order[plan.second]];
    }
    Net net;
    net.layers = {first_layer(projection.direction, fold)};
    net.head = {.in = 3, .out = 1, .weight = {0.0, 0.0, 1.0}, .bias = {0.0}};
    const std::vector<double> q = evaluate(net, rows(), options_.threads);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return std::pair(-q[a], a) < std::pair(-q[b], b); });
    Line line;
    for (const std::size_t sample : order) {
      if (sample == absorbed) continue;
      line.q.push_back(q[sample]);
      line.classes.push_back(samples_.classes[sample]);
      line.rows.push_back(samples_.rows[sample]);
    }
    line.runs = count_runs(line.classes);
    fold.runs = line.runs;
    line.folds = {fold};
    return line;
  }

  bool fold(Line& line, const FoldRules& rules, std::size_t attempt) {
    const std::size_t expected = line.q.size() + line.folds.size();
    constexpr std::size_t step = 1024;
    for (std::size_t saved = line.folds.size();;) {
      const LineState state = advance(line, rules, step);
      if (state == LineState::lost) return false;
      if (state == LineState::done) return true;
      // A tie broken again and again would go on for ever.
      if (line.folds.size() > 3 * expected) return false;
      try {
        progress_("fold", line.folds.size(), expected);
      } catch (const Error&) {
        save_state(options_.resume, {attempt, fingerprint(), line});
        throw;
      }
      if (line.folds.size() - saved >= options_.save_every) {
        save_state(options_.resume, {attempt, fingerprint(), line});
        saved = line.folds.size();
      }
    }
  }

 public:
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_of(x_, samples_.classes, options_); }

 private:
  const Samples& samples_;
  std::vector<double> x_;
  std::size_t width_;
  const ConstructOptions& options_;
  const Progress& progress_;
  bool separable_ = false;
};

std::size_t count_correct(const Net& net, MatrixView<const double> x, const std::vector<std::int64_t>& wanted,
                          const ConstructOptions& options, const Progress& progress) {
  const std::vector<std::int64_t> given = labels(net, x, options.threads, progress);
  std::size_t correct = 0;
  for (std::size_t row = 0; row < given.size(); ++row) correct += given[row] == wanted[row] ? 1 : 0;
  return correct;
}

Net constant_net(std::size_t width, std::int64_t label) {
  Net net;
  net.head = {.in = width, .out = 1, .weight = std::vector<double>(width, 0.0), .bias = {0.0}};
  net.classes = {label};
  return net;
}

void construct_stable(MatrixView<const double> x, const Samples& samples, const ConstructOptions& options,
                      const Progress& progress, Construction& construction) {
  StableConstruction attempts(samples, gather(x, samples.rows), x.width(), options, progress);
  std::optional<ResumeState> resumed = load_state(options.resume, attempts.fingerprint());
  for (std::size_t attempt = resumed ? resumed->attempt : 0; attempt < most_attempts; ++attempt) {
    construction.attempts = attempt + 1;
    std::optional<Line> line;
    if (resumed) line = std::move(resumed->line);
    resumed.reset();
    std::optional<Net> net = attempts.run(attempt, std::move(line), construction);
    if (!net) continue;
    const std::size_t correct = count_correct(*net, x, samples.wanted, options, progress);
    if (construction.net.head.out != 0 && correct <= construction.correct) continue;
    construction.net = std::move(*net);
    construction.correct = correct;
    if (correct == x.rows()) return;
  }
  if (construction.net.head.out == 0) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("construct: {}, expected samples further apart",
                    attempts.separable() ? "float64 loses samples of different labels to one another"
                                         : "no projection tells all samples of different labels apart"));
  }
}

}  // namespace

Construction construct(MatrixView<const double> x, std::span<const std::int64_t> labels,
                       const ConstructOptions& options, const Progress& progress) {
  const Samples samples = distinct_samples(x, labels, options.first_label_wins);
  Construction construction;
  construction.distinct = samples.rows.size();
  construction.relabelled = samples.relabelled;
  construction.total = x.rows();
  if (samples.names.size() == 1) {
    construction.net = constant_net(x.width(), samples.names[0]);
    construction.correct = x.rows();
  } else if (options.mode == Mode::paper) {
    construct_paper(x, samples, options, progress, construction);
    construction.correct = count_correct(construction.net, x, samples.wanted, options, progress);
  } else {
    construct_stable(x, samples, options, progress, construction);
  }
  return construction;
}

}  // namespace normscope::lnnet
