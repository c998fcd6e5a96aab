#include "stable_mode.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <normscope/core/error.hpp>

#include "fold_plan.hpp"
#include "head.hpp"
#include "predict.hpp"
#include "projection.hpp"

namespace normscope::nets {

namespace {

/// The line after the first layer, which folds the projection itself.
template <typename T>
Line<T> first_line(MatrixView<const double> x, const Samples& samples, const Projection<T>& projection,
                   double kappa) {
  std::vector<std::size_t> order(x.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<T>& u = projection.values;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return u[a] < u[b] || (!(u[b] < u[a]) && a < b); });
  std::vector<T> ascending;
  std::vector<std::uint32_t> classes;
  for (const std::size_t sample : order) {
    ascending.push_back(u[sample]);
    classes.push_back(samples.classes[sample]);
  }
  const FoldPlan<T> plan = plan_fold<T>(ascending, classes, samples.names.size(), kappa);
  Crease<T> fold{.midpoint = plan.midpoint, .radius = plan.radius, .gap = plan.gap};
  std::size_t absorbed = no_row;
  if (plan.merges()) {
    absorbed = order[plan.first];
    fold.first = samples.rows[absorbed];
    fold.second = samples.rows[order[plan.second]];
  }
  std::vector<T> q(x.rows());
  for (std::size_t row = 0; row < x.rows(); ++row)
    q[row] = first_step(x.row(row), projection.direction, fold);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return q[a] > q[b] || (!(q[b] > q[a]) && a < b); });
  Line<T> line;
  for (const std::size_t sample : order) {
    if (sample == absorbed) continue;
    line.q.push_back(q[sample]);
    line.classes.push_back(samples.classes[sample]);
    line.rows.push_back(samples.rows[sample]);
  }
  line.runs = count_runs(line.classes);
  fold.runs = line.runs;
  line.folds = {fold};
  return line;
}

/// Whether the line was folded completely.
template <typename T>
bool fold_all(Line<T>& line, const FoldRules& rules, std::size_t save_every, const SaveLine<T>& save,
              const Progress& progress) {
  const std::size_t expected = line.q.size() + line.folds.size();
  constexpr std::size_t step = 1024;
  for (std::size_t saved = line.folds.size();;) {
    const LineState state = advance(line, rules, step);
    if (state != LineState::folding) return state == LineState::done;
    // A tie that is broken repeatedly would never end.
    if (line.folds.size() > 3 * expected) return false;
    try {
      progress("fold", line.folds.size(), expected);
    } catch (const Error&) {
      save(line);
      throw;
    }
    if (line.folds.size() - saved >= save_every) {
      save(line);
      saved = line.folds.size();
    }
  }
}

}  // namespace

template <typename T>
StableAttempt construct_stable(MatrixView<const double> x, const Samples& samples, const StablePlan& plan,
                               std::optional<Line<T>> resumed, const SaveLine<T>& save,
                               const Progress& progress) {
  const Projection<T> projection = best_projection<T>(x, samples.classes, plan.seed, plan.threads);
  StableAttempt attempt{.separable = projection.separation > 0.0};
  if (!attempt.separable) return attempt;
  Line<T> line = resumed ? std::move(*resumed) : first_line(x, samples, projection, plan.kappa);
  const FoldRules rules{samples.names.size(), plan.kappa, plan.early_stop, plan.threads};
  if (!fold_all(line, rules, plan.save_every, save, progress)) return attempt;
  Net net{.precision = precision_of<T>};
  net.layers.push_back(first_layer(projection.direction, line.folds.front()));
  for (std::size_t l = 1; l < line.folds.size(); ++l) net.layers.push_back(fold_layer(line.folds[l]));
  net.head = threshold_head(line.q, line.classes, std::vector<T>{0.0, 0.0, 1.0}, samples.names, net.classes);
  attempt.net = std::move(net);
  for (const Crease<T>& fold : line.folds) attempt.folds.push_back(fold.stated());
  return attempt;
}

template StableAttempt construct_stable(MatrixView<const double>, const Samples&, const StablePlan&,
                                        std::optional<Line<double>>, const SaveLine<double>&,
                                        const Progress&);
template StableAttempt construct_stable(MatrixView<const double>, const Samples&, const StablePlan&,
                                        std::optional<Line<DoubleDouble>>, const SaveLine<DoubleDouble>&,
                                        const Progress&);

}  // namespace normscope::nets
