#include <charconv>
#include <cstring>
#include <map>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>

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

checkpoint::NewTensor tensor(const std::string& name, const std::vector<float>& values) {
  return {name, Dtype::F32, {values.size()}, std::as_bytes(std::span(values))};
}

std::vector<float> values(const checkpoint::Checkpoint& file, const std::string& name, std::size_t count) {
  const checkpoint::Tensor* found = file.find(name);
  if (found == nullptr || found->dtype != Dtype::F32 || found->bytes.size() != count * sizeof(float)) {
    throw Error(ErrorCode::Format, fmt::format("state: {}: no tensor \"{}\" of {} F32 values",
                                               file.path().string(), name, count));
  }
  std::vector<std::byte> buffer;
  const std::span<const std::byte> bytes = found->bytes.fetch(buffer);
  std::vector<float> result(count);
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

}  // namespace

void save_state(const std::filesystem::path& path, const Job& job, const TrainingState& state) {
  nlohmann::json progress = {{"step", state.step}, {"curve", nlohmann::json::array()}};
  for (const CurvePoint& point : state.curve) {
    progress["curve"].push_back({point.step, point.training_loss, point.validation_loss});
  }
  Facts facts = identity(job);
  facts["progress"] = progress.dump();
  checkpoint::write_safetensors(
      path,
      std::vector{tensor("values", state.values), tensor("first_moments", state.moments.first),
                  tensor("second_moments", state.moments.second)},
      facts);
}

TrainingState load_state(const std::filesystem::path& path, const Job& job) {
  const checkpoint::Checkpoint file(path);
  for (const auto& [name, expected] : identity(job)) {
    const auto found = file.metadata().find(name);
    if (found == file.metadata().end() || found->second != expected) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("state: {}: begun with other {}, expected those of this run", path.string(), name));
    }
  }
  TrainingState state;
  try {
    const auto progress = nlohmann::json::parse(file.metadata().at("progress"));
    state.step = progress.at("step").get<std::size_t>();
    for (const auto& point : progress.at("curve")) {
      state.curve.push_back(
          {point.at(0).get<std::size_t>(), point.at(1).get<double>(), point.at(2).get<double>()});
    }
  } catch (const std::exception&) {
    throw Error(
        ErrorCode::Format,
        fmt::format("state: {}: no progress in its metadata, expected step and curve", path.string()));
  }
  const std::size_t count = total_count(parameters(job.recipe));
  state.values = values(file, "values", count);
  state.moments.first = values(file, "first_moments", count);
  state.moments.second = values(file, "second_moments", count);
  return state;
}

}  // namespace normscope::lab
