#include "training.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/snapshot.hpp>

#include "gpt/adamw.hpp"

namespace normscope::lab::grouped {
namespace {

/// State needed to continue a training.
struct State {
  std::vector<float> values;
  Moments moments;
  double loss = 0.0;             ///< summed since the last point of the curve
  std::vector<double> frozen{};  ///< denominators of the norms, once they are removed
};

Bytes bytes_of(const State& state) {
  Packer packer;
  packer.put(state.loss);
  for (const auto* part : {&state.values, &state.moments.first, &state.moments.second}) packer.put(*part);
  packer.put(state.frozen);
  return packer.bytes();
}

void restore(State& state, std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  unpacker.get(state.loss);
  for (auto* part : {&state.values, &state.moments.first, &state.moments.second}) unpacker.get(*part);
  unpacker.get(state.frozen);
  unpacker.finish();
}

/// Settings common to all these trainings.
Recipe recipe_of(const Run& run) {
  const auto steps = run.get<std::size_t>("steps");
  const auto warmup = run.get<std::size_t>("warmup");
  return {.seed = run.seed(),
          .steps = steps,
          .warmup_steps = warmup,
          .cooldown_steps = steps - std::min(steps, warmup),
          .peak_learning_rate = run.get<double>("rate"),
          .beta1 = 0.9,
          .beta2 = 0.98,
          .adam_epsilon = 1e-8,
          .weight_decay = 0.05,
          .gradient_clip = 1.0,
          .measure_every = run.get<std::size_t>("measure_every")};
}

Score held_out(const Network& network, const State& state, const std::vector<Batch>& batches) {
  Score mean;
  double labels = 0.0;
  for (const Batch& batch : batches) {
    const Score score = network.score(state.values, batch);
    const auto count = static_cast<double>(batch.labels.size());
    mean.loss += count * score.loss;
    mean.accuracy += count * score.accuracy;
    labels += count;
  }
  return {mean.loss / labels, mean.accuracy / labels};
}

Network removed(const Network& network, const std::vector<double>& denominators) {
  Shape shape = network.shape();
  shape.frozen = denominators;
  return Network(shape);
}

void measure(Run& run, std::size_t step, const Observation& found) {
  double worst = 0.0;
  double size = 0.0;
  for (const NormInput& input : found.norms) {
    run.measure(input.norm + ".cosine", step, input.cosine);
    run.measure(input.norm + ".cosine_size", step, input.cosine_size);
    run.measure(input.norm + ".sigma_off", step, input.sigma_deviation / input.sigma);
    run.measure(input.norm + ".mean_square", step, input.mean_square);
    worst = std::max(worst, std::abs(input.cosine));
    size += input.cosine_size / static_cast<double>(found.norms.size());
  }
  run.measure("worst_cosine", step, worst);
  run.measure("cosine_size", step, size);
  run.measure("largest_score", step, found.largest_score);
}

}  // namespace

Json to_json(const Schedule& schedule) {
  return {{"steps", schedule.steps},
          {"warmup", schedule.warmup},
          {"rate", schedule.rate},
          {"measure_every", schedule.measure_every}};
}

void train(Run& run, const Network& given, const Data& data) {
  const bool observes = run.configuration().value("observe", false);
  const auto removed_at = run.configuration().value("removed_at", std::uint64_t{0});
  Network network = given;
  const Recipe recipe = recipe_of(run);
  const std::vector<Parameter>& tensors = network.parameters();
  State state{.values = initial_values(tensors, recipe.seed), .moments = {}};
  state.moments.first.assign(state.values.size(), 0.0F);
  state.moments.second.assign(state.values.size(), 0.0F);
  if (run.step() > 0) restore(state, run.progress());
  if (!state.frozen.empty()) network = removed(given, state.frozen);
  if (run.step() == 0 && observes) measure(run, 0, network.observe(state.values, data.held_out.front()));
  std::vector<float> gradient(state.values.size());
  for (std::size_t step = run.step(); step < recipe.steps;) {
    const Batch batch = data.batch(recipe.seed, step);
    state.loss += network.loss_and_gradient(state.values, batch, gradient);
    clip(gradient, recipe.gradient_clip);
    adamw_step(recipe, tensors, step, gradient, state.values, state.moments);
    ++step;
    if (step % recipe.measure_every == 0 || step == recipe.steps) {
      const std::size_t since =
          step % recipe.measure_every == 0 ? recipe.measure_every : step % recipe.measure_every;
      const Score score = held_out(network, state, data.held_out);
      run.measure("train_loss", step, state.loss / static_cast<double>(since));
      run.measure("loss", step, score.loss);
      run.measure("accuracy", step, score.accuracy);
      state.loss = 0.0;
      if (observes) measure(run, step, network.observe(state.values, data.held_out.front()));
    }
    if (step == removed_at) {
      run.measure("loss_before", step, held_out(network, state, data.held_out).loss);
      for (const NormInput& input : network.observe(state.values, data.batch(recipe.seed, step)).norms)
        state.frozen.push_back(input.sigma);
      network = removed(given, state.frozen);
      run.measure("loss_after", step, held_out(network, state, data.held_out).loss);
    }
    run.reached(step, recipe.steps, [&] { return bytes_of(state); });
  }
}

}  // namespace normscope::lab::grouped
