#include "training.hpp"

#include <fmt/format.h>
#include <normscope/core/error.hpp>

#include "measures.hpp"

namespace normscope::lab {
namespace {

constexpr std::size_t save_every = 250;

}  // namespace

TrainingState initial_state(const Recipe& recipe) {
  TrainingState state;
  state.values = initial_values(recipe);
  state.moments.first.assign(state.values.size(), 0.0F);
  state.moments.second.assign(state.values.size(), 0.0F);
  return state;
}

void train(const Job& job, Network& network, TrainingState& state, const std::filesystem::path& path,
           const Progress& progress) {
  const Recipe& recipe = job.recipe;
  const std::vector<Parameter> tensors = parameters(recipe);
  const std::vector<std::string> seen = thinned(job.words.training, recipe.measure_words);
  const std::vector<std::string> unseen = thinned(job.words.validation, recipe.measure_words);
  const auto measure = [&] {
    state.curve.push_back(
        {state.step, model_loss(network, state.values, seen), model_loss(network, state.values, unseen)});
  };
  if (state.curve.empty()) measure();

  // The rows before the state's step are drawn again, which costs less than keeping where they were.
  TrainingRows rows(job.words.training, recipe.context, recipe.seed + 1);
  for (std::size_t step = 0; step < state.step; ++step) static_cast<void>(rows.next(recipe.batch_rows));

  std::vector<float> gradient(state.values.size());
  while (state.step < recipe.steps) {
    const double loss = network.loss_and_gradient(state.values, rows.next(recipe.batch_rows), gradient);
    clip(gradient, recipe.gradient_clip);
    adamw_step(recipe, tensors, state.step, gradient, state.values, state.moments);
    ++state.step;
    if (state.step % recipe.measure_every == 0 || state.step == recipe.steps) measure();
    if (state.step % save_every == 0) save_state(path, job, state);
    try {
      progress(fmt::format("training, loss {:.3f}", loss), state.step, recipe.steps);
    } catch (const Error&) {
      save_state(path, job, state);
      throw;
    }
  }
}

}  // namespace normscope::lab
