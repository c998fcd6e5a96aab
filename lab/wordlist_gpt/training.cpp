#include "training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

namespace normscope::lab {
namespace {

constexpr std::size_t words_at_once = 512;

/// ln sum exp(scores)
double log_sum_exp(std::span<const float> scores) {
  const double peak = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (const float score : scores) sum += std::exp(score - peak);
  return peak + std::log(sum);
}

}  // namespace

double model_loss(Network& network, std::span<const float> values, std::span<const std::string> words) {
  double loss = 0.0;
  std::size_t counted = 0;
  for (std::size_t first = 0; first < words.size(); first += words_at_once) {
    const Batch batch = one_word_a_row(words.subspan(first, std::min(words_at_once, words.size() - first)));
    const std::vector<float> logits = network.logits(values, batch);
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      if (batch.targets[i] == uncounted) continue;
      const std::span scores(logits.data() + i * alphabet.size(), alphabet.size());
      loss += log_sum_exp(scores) - scores[static_cast<std::size_t>(batch.targets[i])];
      ++counted;
    }
  }
  return loss / static_cast<double>(counted);
}

double count_loss(std::span<const std::string> training, std::span<const std::string> words,
                  std::size_t order) {
  std::map<std::string, std::array<double, alphabet.size()>> counts;
  const auto for_each_character = [order](std::span<const std::string> list, const auto& visit) {
    for (const std::string& word : list) {
      const std::string text = std::string(order, '\n') + word + '\n';
      for (std::size_t i = order; i < text.size(); ++i) {
        visit(text.substr(i - order, order), static_cast<std::size_t>(*token(text[i])));
      }
    }
  };
  for_each_character(training, [&](const std::string& before, std::size_t next) { ++counts[before][next]; });
  double loss = 0.0;
  std::size_t counted = 0;
  for_each_character(words, [&](const std::string& before, std::size_t next) {
    double total = alphabet.size();
    for (const double count : counts[before]) total += count;
    loss += std::log(total / (counts[before][next] + 1.0));
    ++counted;
  });
  return loss / static_cast<double>(counted);
}

std::string sample_word(Network& network, const Recipe& recipe, std::span<const float> values,
                        const std::string& prefix, double temperature, Random& random) {
  std::string word = prefix;
  while (word.size() + 1 < recipe.context) {
    const Batch batch = one_word_a_row({&word, 1});
    const std::vector<float> logits = network.logits(values, batch);
    std::vector<float> scores(logits.end() - alphabet.size(), logits.end());
    std::size_t next = std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (temperature > 0.0) {
      for (float& score : scores) score /= static_cast<float>(temperature);
      const double total = log_sum_exp(scores);
      double left = random.uniform();
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const double probability = std::exp(scores[i] - total);
        if (left < probability) {
          next = i;
          break;
        }
        left -= probability;
      }
    }
    if (next == separator) break;
    word += alphabet[next];
  }
  return word;
}

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

namespace {

using Facts = std::map<std::string, std::string, std::less<>>;

/// What must be equal for a state to go on where it stopped.
Facts identity(const Job& job) {
  return {{"recipe", to_json(job.recipe)},
          {"words", fmt::format("{:016x}", job.words.fingerprint)},
          {"threads", fmt::format("{}", job.threads)}};
}

files::NewTensor tensor(const std::string& name, const std::vector<float>& values) {
  return {name, Dtype::F32, {values.size()}, std::as_bytes(std::span(values))};
}

template <class T>
std::vector<T> values(const files::Checkpoint& file, const std::string& name, Dtype dtype,
                      std::size_t count) {
  const files::Tensor* found = file.find(name);
  if (found == nullptr || found->dtype != dtype || found->bytes.size() != count * sizeof(T)) {
    throw Error(ErrorCode::Format, fmt::format("state: {}: no tensor \"{}\" of {} {} values",
                                               file.path().string(), name, count, to_string(dtype)));
  }
  std::vector<std::byte> buffer;
  const std::span<const std::byte> bytes = found->bytes.fetch(buffer);
  std::vector<T> result(count);
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

}  // namespace

void save_state(const std::filesystem::path& path, const Job& job, const TrainingState& state) {
  const std::uint64_t step = state.step;
  std::vector<double> curve;
  for (const CurvePoint& point : state.curve) {
    curve.insert(curve.end(), {static_cast<double>(point.step), point.training_loss, point.validation_loss});
  }
  files::write_safetensors(
      path,
      std::vector<files::NewTensor>{
          tensor("values", state.values),
          tensor("first_moments", state.moments.first),
          tensor("second_moments", state.moments.second),
          {"step", Dtype::U64, {}, std::as_bytes(std::span(&step, 1))},
          {"curve", Dtype::F64, {state.curve.size(), 3}, std::as_bytes(std::span(curve))}},
      identity(job));
}

TrainingState load_state(const std::filesystem::path& path, const Job& job) {
  const files::Checkpoint file(path);
  for (const auto& [name, expected] : identity(job)) {
    const auto found = file.metadata().find(name);
    if (found == file.metadata().end() || found->second != expected) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("state: {}: begun with other {}, expected those of this run", path.string(), name));
    }
  }
  TrainingState state;
  state.step = static_cast<std::size_t>(values<std::uint64_t>(file, "step", Dtype::U64, 1).front());
  const files::Tensor* curve = file.find("curve");
  const std::vector<double> points =
      values<double>(file, "curve", Dtype::F64, curve == nullptr ? 0 : curve->bytes.size() / sizeof(double));
  for (std::size_t i = 0; i + 3 <= points.size(); i += 3) {
    if (!(points[i] >= 0.0 && points[i] <= static_cast<double>(state.step))) {
      throw Error(ErrorCode::Format,
                  fmt::format("state: {}: a point of the curve at step {}, expected 0 to {}", path.string(),
                              points[i], state.step));
    }
    state.curve.push_back({static_cast<std::size_t>(points[i]), points[i + 1], points[i + 2]});
  }
  const std::size_t count = total_count(parameters(job.recipe));
  state.values = values<float>(file, "values", Dtype::F32, count);
  state.moments.first = values<float>(file, "first_moments", Dtype::F32, count);
  state.moments.second = values<float>(file, "second_moments", Dtype::F32, count);
  return state;
}

}  // namespace normscope::lab
