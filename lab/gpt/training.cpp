#include "training.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

namespace normscope::lab {
namespace {

constexpr std::size_t rows_at_once = 32;

/// ln sum exp(scores)
double log_sum_exp(std::span<const float> scores) {
  const double peak = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (const float score : scores) sum += std::exp(score - peak);
  return peak + std::log(sum);
}

}  // namespace

double model_loss(Network& network, const Recipe& recipe, std::span<const float> values,
                  std::span<const std::int64_t> stream, std::size_t count) {
  const std::size_t rows = (stream.size() - 1) / recipe.context;
  const std::size_t kept = std::min(count, rows);
  double loss = 0.0;
  for (std::size_t first = 0; first < kept; first += rows_at_once) {
    const std::size_t some = std::min(rows_at_once, kept - first);
    Batch batch{0, recipe.context, {}, {}};
    for (std::size_t row = first; row < first + some; ++row) {
      append_row(batch, stream, row * rows / kept * recipe.context);
    }
    const std::vector<float> logits = network.logits(values, batch);
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      const std::span scores(logits.data() + i * recipe.tokens, recipe.tokens);
      loss += log_sum_exp(scores) - scores[static_cast<std::size_t>(batch.targets[i])];
    }
  }
  return loss / static_cast<double>(kept * recipe.context);
}

double count_loss(std::span<const std::int64_t> training, std::span<const std::int64_t> stream,
                  std::size_t tokens, std::size_t order) {
  struct Counts {
    double total = 0.0;
    std::map<std::int64_t, double> next;
  };
  // By the tokens before, as one number each.
  std::vector<std::map<std::uint64_t, Counts>> orders(order + 1);
  const auto context = [tokens](std::span<const std::int64_t> part, std::size_t at, std::size_t length) {
    std::uint64_t number = 0;
    for (std::size_t i = at - length; i < at; ++i)
      number = number * tokens + static_cast<std::uint64_t>(part[i]);
    return number;
  };
  for (std::size_t length = 0; length <= order; ++length) {
    for (std::size_t at = length; at < training.size(); ++at) {
      Counts& counts = orders[length][context(training, at, length)];
      ++counts.total;
      ++counts.next[training[at]];
    }
  }
  double loss = 0.0;
  for (std::size_t at = order; at < stream.size(); ++at) {
    double probability = 1.0 / static_cast<double>(tokens);
    for (std::size_t length = 0; length <= order; ++length) {
      const auto found = orders[length].find(context(stream, at, length));
      if (found == orders[length].end()) break;
      const auto next = found->second.next.find(stream[at]);
      const double seen = next == found->second.next.end() ? 0.0 : next->second;
      const auto distinct = static_cast<double>(found->second.next.size());
      probability = (seen + distinct * probability) / (found->second.total + distinct);
    }
    loss -= std::log(probability);
  }
  return loss / static_cast<double>(stream.size() - order);
}

std::string sample_text(Network& network, const Recipe& recipe, std::span<const float> values,
                        const BytePairs& pairs, std::span<const std::int64_t> prompt, double temperature,
                        Random& random) {
  Tokens tokens(prompt.begin(), prompt.end());
  while (tokens.size() < recipe.context) {
    const Batch batch{1, tokens.size(), tokens, tokens};
    const std::vector<float> logits = network.logits(values, batch);
    std::vector<float> scores(logits.end() - static_cast<std::ptrdiff_t>(recipe.tokens), logits.end());
    for (float& score : scores) score /= static_cast<float>(temperature);
    const double total = log_sum_exp(scores);
    std::size_t next = 0;
    for (double left = random.uniform(); next + 1 < scores.size(); ++next) {
      left -= std::exp(scores[next] - total);
      if (left < 0.0) break;
    }
    tokens.push_back(static_cast<std::int64_t>(next));
  }
  std::string text;
  for (const std::int64_t token : tokens) {
    if (static_cast<std::size_t>(token) < pairs.tokens.size())
      text += pairs.tokens[static_cast<std::size_t>(token)];
  }
  return text;
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
  const auto measure = [&] {
    const auto loss = [&](const Tokens& stream) {
      return model_loss(network, recipe, state.values, stream, recipe.measure_rows);
    };
    state.curve.push_back({state.step, loss(job.text.training), loss(job.text.held_out)});
  };
  if (state.curve.empty()) measure();

  // The rows before the state's step are drawn again, which costs less than keeping where they were.
  Random random(recipe.seed + 1);
  const auto next_rows = [&] {
    return random_rows(job.text.training, recipe.context, recipe.batch_rows, random);
  };
  for (std::size_t step = 0; step < state.step; ++step) static_cast<void>(next_rows());

  std::vector<float> gradient(state.values.size());
  while (state.step < recipe.steps) {
    const double loss = network.loss_and_gradient(state.values, next_rows(), gradient);
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
          {"text", fmt::format("{:016x}", job.text.fingerprint)},
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
    curve.insert(curve.end(), {static_cast<double>(point.step), point.training_loss, point.held_out_loss});
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
