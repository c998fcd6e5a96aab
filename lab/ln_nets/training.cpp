#include "training.hpp"

#include <algorithm>
#include <optional>

#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/results/figures.hpp>

namespace normscope::lab::ln_nets {
namespace {

/// Number of points of a curve that are stored.
constexpr std::size_t most_points = 400;

/// Number of steps between two stored points.
std::size_t kept_every(std::size_t steps, std::size_t record_every) {
  const std::size_t records = (steps + record_every - 1) / record_every;
  return (records + most_points - 1) / most_points * record_every;
}

Bytes bytes_of(const nets::TrainState& state) {
  Packer packer;
  packer.put(state.step);
  for (const auto* part : {&state.parameters, &state.first, &state.second, &state.loss, &state.accuracy})
    packer.put(*part);
  return packer.bytes();
}

nets::TrainState state_of(std::span<const std::byte> bytes) {
  nets::TrainState state;
  Unpacker unpacker(bytes);
  unpacker.get(state.step);
  for (auto* part : {&state.parameters, &state.first, &state.second, &state.loss, &state.accuracy})
    unpacker.get(*part);
  unpacker.finish();
  return state;
}

void measure_end(Run& run, const nets::Trainer& trainer, std::initializer_list<HeldOut> held_out) {
  const nets::TrainSpec& spec = trainer.spec();
  const auto at_end = [&](const char* name, double value) { run.measure(name, spec.steps, value); };
  at_end("train_accuracy", trainer.score().accuracy);
  for (const HeldOut& part : held_out) at_end(part.metric, trainer.score(part.data).accuracy);
  at_end("to_95",
         static_cast<double>(nets::first_step_at(trainer.accuracy(), spec.record_every, 0.95, spec.steps)));
  const std::vector<nets::Transition> found = nets::transitions(trainer.accuracy(), spec.record_every);
  nets::Transition largest;
  for (const nets::Transition& one : found) {
    if (one.gain > largest.gain) largest = one;
  }
  at_end("transitions", static_cast<double>(found.size()));
  at_end("gain", largest.gain);
  at_end("gain_step", static_cast<double>(largest.step));
}

}  // namespace

Json to_json(const nets::TrainSpec& spec) {
  Json json{{"activation", std::string(to_string(spec.activation))},
            {"norm", std::string(to_string(spec.norm))},
            {"groups", spec.groups},
            {"width", spec.width},
            {"depth", spec.depth},
            {"eps", spec.eps},
            {"rate", spec.rate},
            {"schedule", std::string(to_string(spec.schedule))},
            {"steps", spec.steps},
            {"batch", spec.batch},
            {"record_every", spec.record_every},
            {"precision", std::string(to_string(spec.precision))}};
  // Runs are found by their configuration: those from before there was a choice do not name it.
  if (spec.initialization != nets::Initialization::uniform)
    json["initialization"] = std::string(to_string(spec.initialization));
  return json;
}

nets::TrainSpec spec_of(const Run& run) {
  return {.width = run.get<std::size_t>("width"),
          .depth = run.get<std::size_t>("depth"),
          .activation = nets::activation(run.get<std::string>("activation")),
          .norm = norm_kind(run.get<std::string>("norm")),
          .groups = run.get<std::size_t>("groups"),
          .eps = run.get<double>("eps"),
          .initialization = nets::initialization(run.configuration().value("initialization", "uniform")),
          .rate = run.get<double>("rate"),
          .schedule = nets::schedule(run.get<std::string>("schedule")),
          .steps = run.get<std::size_t>("steps"),
          .batch = run.get<std::size_t>("batch"),
          .seed = run.seed(),
          .record_every = run.get<std::size_t>("record_every"),
          .precision = run.get<std::string>("precision") == "F32" ? Dtype::F32 : Dtype::F64};
}

void train(Run& run, std::shared_ptr<const nets::Dataset> data, std::initializer_list<HeldOut> held_out) {
  nets::Trainer trainer(spec_of(run), std::move(data), 1);
  const nets::TrainSpec& spec = trainer.spec();
  if (run.step() > 0) trainer.resume(state_of(run.progress()));
  const std::size_t kept = kept_every(spec.steps, spec.record_every);
  while (!trainer.done()) {
    const std::size_t step = trainer.steps_done();
    trainer.step();
    if (step % kept == 0) {
      run.measure("loss", step + 1, trainer.loss().back());
      run.measure("accuracy", step + 1, trainer.accuracy().back());
    }
    if (trainer.done()) measure_end(run, trainer, held_out);
    run.reached(step + 1, spec.steps, [&] { return bytes_of(trainer.state()); });
  }
}

std::vector<double> curve(const Done& run, std::string_view metric) {
  std::vector<double> values;
  for (const Metric& one : run.metrics) {
    if (one.name == metric) values.push_back(one.value);
  }
  return values;
}

std::size_t steps_between_points(const Json& configuration) {
  return kept_every(configuration.at("steps").get<std::size_t>(),
                    configuration.at("record_every").get<std::size_t>());
}

std::size_t above(const Results& results, const char* metric, double level) {
  const std::vector<Done>& runs = results.runs();
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const Done& run) { return run.last(metric) > level; }));
}

double median(std::vector<double> values) {
  NORMSCOPE_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double median(const Results& results, const char* metric) {
  std::vector<double> values;
  for (const Done& run : results.runs()) values.push_back(run.last(metric));
  return median(std::move(values));
}

Figure curves(const Results& results, const char* name, const std::string& caption) {
  std::vector<std::vector<double>> losses, accuracies;
  for (const Done& run : results.runs()) {
    losses.push_back(curve(run, "loss"));
    accuracies.push_back(curve(run, "accuracy"));
  }
  std::vector<figures::RunCurves> runs;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Done& run = results.runs()[i];
    runs.push_back({.loss = losses[i], .accuracy = accuracies[i], .transitions = {}});
    // If there are several transitions, the largest is marked.
    if (run.last("transitions") > 0.0)
      runs.back().transitions.push_back({static_cast<std::size_t>(run.last("gain_step")), run.last("gain")});
  }
  const std::size_t every = steps_between_points(results.runs().front().configuration);
  return {.name = name, .caption = caption, .specification = figures::training_seeds(runs, every)};
}

namespace {

constexpr std::size_t smoothed_steps = 300;
constexpr double plateau_change = 0.15;

/// The median of the values at most `reach` places away, at every place.
std::vector<double> running_median(std::span<const double> values, std::size_t reach) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i - std::min(i, reach);
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    medians.push_back(
        median({begin, begin + static_cast<std::ptrdiff_t>(std::min(values.size(), i + reach + 1) - first)}));
  }
  return medians;
}

/// A plateau that ends at a place, and the place at which the loss has fallen.
struct Fall {
  double plateau = 0.0;
  std::size_t place = 0;
};

/// Requires  last >= length
std::optional<Fall> fall_after(std::span<const double> medians, std::size_t last, std::size_t length,
                               std::size_t within, double fall_to) {
  if (last >= medians.size()) return std::nullopt;
  const std::span<const double> plateau = medians.subspan(last - length, length + 1);
  const double middle = median({plateau.begin(), plateau.end()});
  const double least = *std::min_element(plateau.begin(), plateau.end());
  const double most = *std::max_element(plateau.begin(), plateau.end());
  if (least < (1.0 - plateau_change) * middle || most > (1.0 + plateau_change) * middle) return std::nullopt;
  const std::span<const double> after =
      medians.subspan(last + 1, std::min(within, medians.size() - last - 1));
  const auto fallen =
      std::find_if(after.begin(), after.end(), [&](double loss) { return loss <= fall_to * least; });
  if (fallen == after.end()) return std::nullopt;
  return Fall{middle, last + 1 + static_cast<std::size_t>(fallen - after.begin())};
}

}  // namespace

std::vector<Plateau> plateaus(std::span<const double> loss, std::size_t every,
                              const PlateauConstants& constants) {
  NORMSCOPE_ASSERT(every >= 1);
  const std::vector<double> medians = running_median(loss, smoothed_steps / every / 2);
  const std::size_t length = std::max<std::size_t>(1, constants.plateau_steps / every);
  const std::size_t within = std::max<std::size_t>(1, constants.fall_steps / every);
  std::vector<Plateau> found;
  std::size_t last = length;
  while (last < medians.size()) {
    std::optional<Fall> fall = fall_after(medians, last, length, within, constants.fall_to);
    if (!fall) {
      ++last;
      continue;
    }
    while (const std::optional<Fall> later =
               fall_after(medians, last + 1, length, within, constants.fall_to)) {
      fall = later;
      ++last;
    }
    found.push_back({.last = last * every, .loss = fall->plateau});
    last = fall->place + length;
  }
  return found;
}

}  // namespace normscope::lab::ln_nets
