#include <algorithm>
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

}  // namespace

void Trainer::save(const std::filesystem::path& path) const {
  const std::vector<std::pair<const char*, std::vector<double>>> values{{"parameters", engine_->parameters()},
                                                                        {"first", engine_->first()},
                                                                        {"second", engine_->second()},
                                                                        {"loss", engine_->loss},
                                                                        {"accuracy", engine_->accuracy}};
  std::vector<checkpoint::NewTensor> tensors;
  for (const auto& [name, entries] : values) {
    tensors.push_back({.name = name,
                       .dtype = Dtype::F64,
                       .shape = {entries.size()},
                       .bytes = std::as_bytes(std::span(entries))});
  }
  checkpoint::write_safetensors(path, tensors,
                                {{"format", format_name},
                                 {"spec", spec_text(engine_->spec)},
                                 {"step", std::to_string(engine_->done)},
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
  const std::size_t done = digits ? std::stoull(step) : SIZE_MAX;
  if (done > engine_->spec.steps) {
    throw Error(ErrorCode::Format, fmt::format("{}: its step is \"{}\", expected 0 to {}", path.string(),
                                               step, engine_->spec.steps));
  }
  const auto values = [&](const char* name, std::size_t count) {
    const checkpoint::Tensor* tensor = file.find(name);
    if (tensor == nullptr || tensor->dtype != Dtype::F64 || tensor->shape.size() != 1 ||
        tensor->shape[0] != count) {
      throw Error(ErrorCode::Format, fmt::format("{}: expected F64 {}[{}]", path.string(), name, count));
    }
    std::vector<double> entries = checkpoint::read(*tensor);
    if (!std::all_of(entries.begin(), entries.end(), [](double value) { return std::isfinite(value); })) {
      throw Error(ErrorCode::Format, fmt::format("{}: {} is not finite", path.string(), name));
    }
    return entries;
  };
  const std::size_t every = engine_->spec.record_every;
  const std::size_t records = (done + every - 1) / every;
  const std::vector<double> parameters = values("parameters", engine_->size);
  const std::vector<double> first = values("first", engine_->size);
  const std::vector<double> second = values("second", engine_->size);
  std::vector<double> loss = values("loss", records);
  std::vector<double> accuracy = values("accuracy", records);
  engine_->assign(parameters, first, second);
  engine_->loss.assign(loss.begin(), loss.end());
  engine_->accuracy.assign(accuracy.begin(), accuracy.end());
  engine_->done = done;
}

}  // namespace normscope::lnnet
