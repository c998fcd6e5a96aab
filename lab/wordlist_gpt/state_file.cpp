#include <cstring>
#include <map>
#include <string>

#include <fmt/format.h>
#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

#include "training.hpp"

namespace normscope::lab {
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
