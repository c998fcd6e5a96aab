#include "folds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

#include "ln_nets/training.hpp"

namespace normscope::lab::ln_nets {
namespace {

constexpr std::size_t window = 100;  ///< steps of a transition, see nets::transitions
constexpr std::size_t point_every = 100;
constexpr std::size_t gradient_every = 10;
constexpr std::size_t steps_after = 10;

/// W x = b by Gaussian elimination with partial pivoting; returns x and the sign of det W.
std::pair<std::vector<double>, int> solve_small(std::vector<double> w, std::vector<double> b) {
  const std::size_t n = b.size();
  int sign = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::abs(w[i * n + k]) > std::abs(w[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      for (std::size_t j = 0; j < n; ++j) std::swap(w[k * n + j], w[pivot * n + j]);
      std::swap(b[k], b[pivot]);
      sign = -sign;
    }
    if (w[k * n + k] < 0.0) sign = -sign;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = w[i * n + k] / w[k * n + k];
      for (std::size_t j = k; j < n; ++j) w[i * n + j] -= factor * w[k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= w[k * n + j] * b[j];
    b[k] /= w[k * n + k];
  }
  return {std::move(b), sign};
}

double length_of(std::span<const double> values) {
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

/// Records of a training; entry i is from before step i.
struct FoldRecords {
  std::vector<int> degrees{};
  std::vector<double> gradients{};  ///< length of the gradient every `gradient_every` steps
  std::span<const double> loss{};
  std::span<const double> accuracy{};
};

/// Median length of the gradient from step `first` to before `last`.
double median_gradient(const FoldRecords& records, std::size_t first, std::size_t last) {
  const auto at = [&](std::size_t step) {
    return records.gradients.begin() + static_cast<std::ptrdiff_t>(step / gradient_every);
  };
  return median({at(first), at(last)});
}

void measure_transition(Run& run, const FoldRecords& records, std::span<const std::size_t> events,
                        std::size_t step) {
  nets::Transition largest;
  for (const nets::Transition& one : nets::transitions(records.accuracy, 1)) {
    if (one.gain > largest.gain) largest = one;
  }
  if (largest.gain == 0.0) return;
  const std::size_t from = largest.step;
  run.measure("transition", step, static_cast<double>(from));
  if (const std::optional<double> rank = rank_of_window(events, from - window, 3 * window))
    run.measure("rank", step, *rank);
  run.measure("gradient_rise", step,
              std::log(median_gradient(records, from, from + window) /
                       median_gradient(records, from - 2 * window, from)));
}

void measure_losses(Run& run, const FoldRecords& records, std::span<const std::size_t> events,
                    std::size_t to_95, std::size_t step) {
  std::vector<double> after;
  std::vector<double> elsewhere;
  for (std::size_t i = 1; i < to_95 && i + steps_after < records.loss.size(); ++i) {
    const bool changed = std::binary_search(events.begin(), events.end(), i);
    (changed ? after : elsewhere).push_back(std::log(records.loss[i + steps_after] / records.loss[i]));
  }
  if (after.empty() || elsewhere.empty()) return;
  run.measure("loss_after_change", step, mean(after));
  run.measure("loss_elsewhere", step, mean(elsewhere));
}

}  // namespace

Fold fold_of(const nets::Layer& layer) {
  NORMSCOPE_ASSERT(layer.in == layer.out);
  const auto [x, sign] = solve_small(layer.weight, layer.bias);
  const double distance = length_of(x);
  return {distance, distance < 1.0 ? sign : 0};
}

void keep_fold(nets::Trainer& trainer, double least, double most) {
  const nets::Net net = trainer.net();
  const nets::Layer& layer = net.layers[1];
  const double distance = fold_of(layer).distance;
  const double kept = std::clamp(distance, least, most);
  if (kept == distance) return;
  std::vector<double> parameters = trainer.parameters();
  const std::size_t bias = net.layers[0].weight.size() + net.layers[0].bias.size() + layer.weight.size();
  for (std::size_t i = 0; i < layer.out; ++i) parameters[bias + i] *= kept / distance;
  trainer.set_parameters(parameters);
}

std::vector<std::size_t> changes(std::span<const int> degrees) {
  std::vector<std::size_t> steps;
  for (std::size_t i = 1; i < degrees.size(); ++i) {
    if (degrees[i] != degrees[i - 1]) steps.push_back(i);
  }
  return steps;
}

std::optional<double> rank_of_window(std::span<const std::size_t> events, std::size_t first,
                                     std::size_t length) {
  if (first < length + 1) return std::nullopt;
  const auto count = [&](std::size_t from) {
    return std::lower_bound(events.begin(), events.end(), from + length) -
           std::lower_bound(events.begin(), events.end(), from);
  };
  double fewer = 0.0;
  const std::size_t windows = first - length;
  for (std::size_t from = 1; from <= windows; ++from)
    fewer += count(from) < count(first) ? 1.0 : count(from) == count(first) ? 0.5 : 0.0;
  return fewer / static_cast<double>(windows);
}

void train_with_folds(Run& run, std::shared_ptr<const nets::Dataset> data, const nets::Dataset& test) {
  nets::Trainer trainer(spec_of(run), std::move(data), 1);
  const std::size_t steps = trainer.spec().steps;
  const auto start = run.get<double>("start");
  const auto least = run.get<double>("least");
  if (start > 0.0) keep_fold(trainer, start, start);
  FoldRecords records;
  std::size_t changed = 0;
  while (!trainer.done()) {
    const std::size_t step = trainer.steps_done();
    if (least > 0.0) keep_fold(trainer, least, infinity);
    records.degrees.push_back(fold_of(trainer.net().layers[1]).degree);
    if (step > 0 && records.degrees[step] != records.degrees[step - 1]) ++changed;
    if (step % gradient_every == 0) records.gradients.push_back(length_of(trainer.gradient()));
    trainer.step();
    if (step % point_every == 0) {
      run.measure("accuracy", step + 1, trainer.accuracy().back());
      run.measure("changes", step + 1, static_cast<double>(std::exchange(changed, 0)));
    }
  }
  if (least > 0.0) keep_fold(trainer, least, infinity);
  records.loss = trainer.loss();
  records.accuracy = trainer.accuracy();
  const std::vector<std::size_t> events = changes(records.degrees);
  const std::size_t to_95 = nets::first_step_at(records.accuracy, 1, 0.95, steps);
  const Fold fold = fold_of(trainer.net().layers[1]);
  const auto at_end = [&](const char* name, double value) { run.measure(name, steps, value); };
  at_end("test_accuracy", trainer.score(test).accuracy);
  at_end("to_95", static_cast<double>(to_95));
  at_end("degree", fold.degree);
  at_end("distance", fold.distance);
  at_end("changes_to_95",
         static_cast<double>(std::lower_bound(events.begin(), events.end(), to_95) - events.begin()));
  measure_transition(run, records, events, steps);
  measure_losses(run, records, events, to_95, steps);
  run.reached(steps, steps, [] { return Bytes{}; });
}

}  // namespace normscope::lab::ln_nets
