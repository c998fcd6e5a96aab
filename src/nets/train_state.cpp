#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>

#include "engine.hpp"

namespace normscope::nets {
namespace {

constexpr SnapshotKind train_state{
    .name = "train", .version = 3, .others = "other options or samples", .former = "normscope.train/"};

std::string spec_text(const TrainSpec& spec) {
  return nlohmann::json{{"width", spec.width},
                        {"depth", spec.depth},
                        {"activation", std::string(to_string(spec.activation))},
                        {"norm", std::string(to_string(spec.norm))},
                        {"groups", spec.groups},
                        {"eps", spec.eps},
                        {"affine", spec.affine},
                        {"initialization", std::string(to_string(spec.initialization))},
                        {"optimizer", std::string(to_string(spec.optimizer))},
                        {"rate", spec.rate},
                        {"momentum", spec.momentum},
                        {"beta1", spec.beta1},
                        {"beta2", spec.beta2},
                        {"schedule", std::string(to_string(spec.schedule))},
                        {"steps", spec.steps},
                        {"batch", spec.batch},
                        {"seed", spec.seed},
                        {"record_every", spec.record_every},
                        {"precision", std::string(to_string(spec.precision))}}
      .dump();
}

/// Hash of everything that a training's numbers depend on.
Digest fingerprint_of(const TrainSpec& spec, const Dataset& data, unsigned threads) {
  const std::string text = spec_text(spec);
  Packer inputs;
  inputs.put(sha256(std::as_bytes(std::span(text))));
  inputs.put(data.width);
  inputs.put(data.classes);
  inputs.put(piecewise_sha256(std::as_bytes(std::span(data.x)), threads));
  inputs.put(piecewise_sha256(std::as_bytes(std::span(data.labels)), threads));
  return sha256(inputs.bytes());
}

/// The vectors of a state, by name.
template <typename State>
auto parts(State& state) {
  return std::array{std::pair("parameters", &state.parameters), std::pair("first", &state.first),
                    std::pair("second", &state.second), std::pair("loss", &state.loss),
                    std::pair("accuracy", &state.accuracy)};
}

}  // namespace

const Digest& Trainer::fingerprint() const {
  std::optional<Digest>& known = engine_->fingerprint;
  if (!known) known = fingerprint_of(engine_->spec, engine_->data, engine_->threads);
  return *known;
}

TrainState Trainer::state() const {
  return {.step = engine_->done,
          .parameters = engine_->parameters(),
          .first = engine_->first(),
          .second = engine_->second(),
          .loss = engine_->loss,
          .accuracy = engine_->accuracy};
}

void Trainer::resume(const TrainState& state) {
  if (state.step > engine_->spec.steps) {
    throw Error(ErrorCode::Format, fmt::format("state of a training: its step is {}, expected 0 to {}",
                                               state.step, engine_->spec.steps));
  }
  const std::size_t every = engine_->spec.record_every;
  const std::size_t records = (state.step + every - 1) / every;
  for (const auto& [name, entries] : parts(state)) {
    const bool recorded = entries == &state.loss || entries == &state.accuracy;
    const std::size_t expected = recorded ? records : engine_->size;
    if (entries->size() != expected) {
      throw Error(ErrorCode::Format, fmt::format("state of a training: {} has {} values, expected {}", name,
                                                 entries->size(), expected));
    }
    if (!std::all_of(entries->begin(), entries->end(), [](double value) { return std::isfinite(value); })) {
      throw Error(ErrorCode::Format, fmt::format("state of a training: {} is not finite", name));
    }
  }
  engine_->assign(state.parameters, state.first, state.second);
  engine_->loss = state.loss;
  engine_->accuracy = state.accuracy;
  engine_->done = state.step;
}

void Trainer::save(const std::filesystem::path& path) const {
  const TrainState now = state();
  Packer payload;
  payload.put<std::uint64_t>(now.step);
  for (const auto& [name, entries] : parts(now)) payload.put(*entries);
  save_snapshot(path, train_state, fingerprint(), payload.bytes());
}

void Trainer::resume(const std::filesystem::path& path) {
  const std::vector<std::byte> payload = load_snapshot(path, train_state, fingerprint());
  Unpacker from(payload, path.string() + ": holds what train did not save; delete it to start again");
  TrainState state;
  std::uint64_t step = 0;
  from.get(step);
  state.step = step;
  for (const auto& [name, entries] : parts(state)) from.get(*entries);
  from.finish();
  try {
    resume(state);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace normscope::nets
