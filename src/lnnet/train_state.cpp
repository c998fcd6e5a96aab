#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>

#include "engine.hpp"

namespace normscope::lnnet {
namespace {

constexpr const char* format_name = "normscope.train/1";

std::string spec_text(const TrainSpec& spec) {
  return nlohmann::json{{"width", spec.width},
                        {"depth", spec.depth},
                        {"activation", std::string(to_string(spec.activation))},
                        {"norm", std::string(to_string(spec.norm))},
                        {"groups", spec.groups},
                        {"eps", spec.eps},
                        {"affine", spec.affine},
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

/// FNV-1a over the samples' bits and the labels, eight bytes at a time.
std::string fingerprint(const Dataset& data) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::uint64_t bits) {
    hash = (hash ^ bits) * 0x100000001b3U;
    // The product carries nothing down from its high bits.
    hash ^= hash >> 32;
  };
  add(data.width);
  add(data.classes);
  for (const double value : data.x) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    add(bits);
  }
  for (const std::uint32_t label : data.labels) add(label);
  return fmt::format("{:016x}", hash);
}

/// The vectors of a state under their names.
template <typename State>
auto parts(State& state) {
  return std::array{std::pair("parameters", &state.parameters), std::pair("first", &state.first),
                    std::pair("second", &state.second), std::pair("loss", &state.loss),
                    std::pair("accuracy", &state.accuracy)};
}

}  // namespace

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
  std::vector<checkpoint::NewTensor> tensors;
  for (const auto& [name, entries] : parts(now)) {
    tensors.push_back({.name = name,
                       .dtype = Dtype::F64,
                       .shape = {entries->size()},
                       .bytes = std::as_bytes(std::span(*entries))});
  }
  checkpoint::write_safetensors(path, tensors,
                                {{"format", format_name},
                                 {"spec", spec_text(engine_->spec)},
                                 {"step", std::to_string(now.step)},
                                 {"data", fingerprint(engine_->data)}});
}

void Trainer::resume(const std::filesystem::path& path) {
  const checkpoint::Checkpoint file(path);
  const auto meta = [&](const char* key) {
    const auto at = file.metadata().find(key);
    return at == file.metadata().end() ? std::string() : at->second;
  };
  if (meta("format") != format_name) {
    throw Error(ErrorCode::Format, fmt::format("{}: is not the state of a training", path.string()));
  }
  if (meta("spec") != spec_text(engine_->spec)) {
    throw Error(ErrorCode::Argument, fmt::format("{}: is the state of a training with other options: {}",
                                                 path.string(), meta("spec")));
  }
  if (meta("data") != fingerprint(engine_->data)) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: is the state of a training on other data", path.string()));
  }
  const std::string step = meta("step");
  const bool digits =
      !step.empty() && step.size() <= 18 && step.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: its step is \"{}\", expected a number", path.string(), step));
  }
  TrainState state{.step = static_cast<std::size_t>(std::stoull(step))};
  for (const auto& [name, entries] : parts(state)) {
    const checkpoint::Tensor* tensor = file.find(name);
    if (tensor == nullptr || tensor->dtype != Dtype::F64 || tensor->shape.size() != 1) {
      throw Error(ErrorCode::Format, fmt::format("{}: expected a vector {} of F64", path.string(), name));
    }
    const std::vector<double> values = checkpoint::read(*tensor);
    entries->assign(values.begin(), values.end());
  }
  try {
    resume(state);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace normscope::lnnet
