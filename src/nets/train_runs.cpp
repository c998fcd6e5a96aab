#include <normscope/nets/train_runs.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::nets {
namespace {

/// Number of progress reports of a training.
constexpr std::size_t progress_reports = 500;
/// Time between two saves of the state; the first is earlier, so that a short training is saved too.
constexpr std::chrono::milliseconds first_save{250};
constexpr std::chrono::milliseconds state_saved_every{10'000};

std::vector<TrainSpec> specs_of(const TrainPlan& plan) {
  std::vector<TrainSpec> kinds;
  if (plan.groups.size() > 1) {
    kinds.push_back(plan.spec);
    kinds.back().depth = 0;
  }
  for (const std::size_t groups : plan.groups.empty() ? std::vector{plan.spec.groups} : plan.groups) {
    kinds.push_back(plan.spec);
    kinds.back().groups = groups;
  }
  std::vector<TrainSpec> all;
  for (const TrainSpec& kind : kinds) {
    validate(kind);
    for (std::size_t i = 0; i < plan.seeds; ++i) {
      all.push_back(kind);
      all.back().seed += i;
    }
  }
  if (all.size() > 1 && !plan.state.empty()) {
    throw Error(ErrorCode::Argument,
                fmt::format("train: a state to resume with {} runs, expected one", all.size()));
  }
  return all;
}

void advance(Trainer& trainer, const Progress& progress, const std::filesystem::path& state) {
  if (!state.empty() && std::filesystem::exists(state)) trainer.resume(state);
  const std::size_t total = trainer.spec().steps;
  const std::size_t every = std::max<std::size_t>(1, total / progress_reports);
  auto saved = std::chrono::steady_clock::now();
  auto pause = first_save;
  try {
    while (!trainer.done()) {
      trainer.step();
      if (trainer.steps_done() % every == 0 || trainer.done()) progress("step", trainer.steps_done(), total);
      if (!state.empty() && std::chrono::steady_clock::now() - saved >= pause) {
        trainer.save(state);
        saved = std::chrono::steady_clock::now();
        pause = std::min(2 * pause, state_saved_every);
      }
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled && !state.empty()) trainer.save(state);
    throw;
  }
  if (!state.empty()) trainer.save(state);
}

/// The scores of a net whose weights overflowed are meaningless.
void expect_finite_weights(const Trainer& trainer) {
  const std::vector<double> weights = trainer.parameters();
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return std::isfinite(weight); }))
    return;
  throw Error(ErrorCode::Argument,
              fmt::format("train: the weights of seed {} leave the range of float64, expected a smaller "
                          "learning rate than {:g}",
                          trainer.spec().seed, trainer.spec().rate));
}

}  // namespace

TrainData data_of(const Task& task, std::size_t rows) {
  return {.samples = [make = task.make, rows = rows == 0 ? task.rows : rows](
                         std::uint64_t seed) { return std::make_shared<const Dataset>(make(rows, seed)); },
          .test = task.test};
}

TrainData with_noise(TrainData data, double deviation) {
  if (deviation == 0.0) return data;
  TrainData result;
  result.samples = [samples = std::move(data.samples), deviation](std::uint64_t seed) {
    return std::make_shared<const Dataset>(with_noise(*samples(seed), deviation, seed));
  };
  if (data.test) {
    result.test = [test = std::move(data.test), deviation](std::uint64_t seed) {
      return with_noise(test(seed), deviation, seed + 1);
    };
  }
  return result;
}

TrainData data_of(Dataset samples) {
  return {.samples = [kept = std::make_shared<const Dataset>(std::move(samples))](std::uint64_t) {
    return kept;
  }};
}

std::vector<TrainRun> train_all(const TrainPlan& plan, const TrainData& data, unsigned threads,
                                const Progress& progress) {
  std::vector<TrainRun> runs;
  for (const TrainSpec& spec : specs_of(plan)) {
    Trainer trainer(spec, data.samples(spec.seed), threads);
    advance(trainer, progress, plan.state);
    expect_finite_weights(trainer);
    TrainRun& run = runs.emplace_back(TrainRun{.trainer = std::move(trainer)});
    run.score = run.trainer.score();
    if (data.test) run.test = run.trainer.score(data.test(spec.seed));
  }
  return runs;
}

const TrainRun& best_of(const std::vector<TrainRun>& runs) {
  return *std::max_element(runs.begin(), runs.end(),
                           [](const TrainRun& a, const TrainRun& b) { return a.accuracy() < b.accuracy(); });
}

}  // namespace normscope::nets
