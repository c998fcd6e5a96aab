#include "key_norm.hpp"

#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::cli {

namespace {

/// Throws unless all keys are finite after `what`; they were checked to be finite before it.
void expect_finite_keys(std::string_view what, MatrixView<const double> keys) {
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    for (std::size_t i = 0; i < keys.width(); ++i) {
      if (std::isfinite(keys.row(row)[i])) continue;
      throw Error(
          ErrorCode::Argument,
          fmt::format("keys: {} makes entry {} of key {} larger than float64 holds, expected smaller ones",
                      what, i, row));
    }
  }
}

}  // namespace

void KeyNormOptions::declare(CLI::App& command) {
  command_ = &command;
  norm.declare(command);
  command.add_option("--step", steps, "Apply only these steps of the norm (default: all)")
      ->type_name("S1,S2,...")
      ->delimiter(',')
      ->check(CLI::IsMember({"project", "scale", "stretch", "shift"}));
}

KeyNorm KeyNormOptions::open(Inputs& inputs) const {
  for (const char* name : {"--norm", "--gain", "--bias", "--groups", "--eps", "--step"}) {
    if (command_->count(name) > 0) return {norm.open(inputs), steps};
  }
  return {};
}

std::optional<GivenNorm> KeyNorm::of_width(std::size_t width) const {
  return norm ? std::optional(norm->of_width(width)) : std::nullopt;
}

void KeyNorm::apply(const std::optional<GivenNorm>& spec, MatrixView<double> keys) const {
  if (!spec) return;
  if (steps.empty()) norm::forward(*spec, keys, keys);
  for (const std::string& step : steps) {
    norm::apply(norm::step(step), *spec, keys, keys);
    expect_finite_keys(step, keys);
  }
  expect_finite_keys("the norm", keys);
}

nlohmann::ordered_json KeyNorm::json(const std::optional<GivenNorm>& spec) const {
  if (!spec) return nullptr;
  const std::vector<std::string> all{"project", "scale", "stretch", "shift"};
  return {{"kind", std::string(to_string(spec->kind))},
          {"steps", steps.empty() ? all : steps},
          {"groups", spec->groups},
          {"eps", spec->eps},
          {"source", spec->source()}};
}

}  // namespace normscope::cli
