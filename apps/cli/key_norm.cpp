#include "key_norm.hpp"

#include <nlohmann/json.hpp>

#include <normscope/geometry/steps.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::cli {

void KeyNorm::declare(CLI::App& command) {
  command_ = &command;
  norm.declare(command);
  command.add_option("--step", steps, "Of the norm, only these steps (project,scale,stretch,shift)")
      ->type_name("S1,S2,...")
      ->delimiter(',')
      ->check(CLI::IsMember({"project", "scale", "stretch", "shift"}));
}

std::optional<NormSpec> KeyNorm::read(std::size_t width) const {
  for (const char* name : {"--norm", "--gain", "--bias", "--groups", "--eps", "--step"}) {
    if (command_->count(name) > 0) return norm.read(width);
  }
  return std::nullopt;
}

void KeyNorm::apply(const std::optional<NormSpec>& spec, MatrixView<double> keys) const {
  if (!spec) return;
  if (steps.empty()) norm::forward(*spec, keys, keys);
  for (const std::string& step : steps) geometry::apply(geometry::step(step), *spec, keys, keys);
}

nlohmann::ordered_json KeyNorm::json(const std::optional<NormSpec>& spec) const {
  if (!spec) return nullptr;
  const std::vector<std::string> all{"project", "scale", "stretch", "shift"};
  return {{"kind", std::string(to_string(spec->kind))},
          {"steps", steps.empty() ? all : steps},
          {"groups", spec->groups},
          {"eps", spec->eps}};
}

}  // namespace normscope::cli
