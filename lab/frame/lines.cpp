#include "lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope::lab {
namespace {

constexpr std::size_t longest_line = std::size_t{1} << 24U;

Json line_of(const RunInfo& run, const std::vector<Metric>& metrics) {
  Json line{{"experiment", run.key.experiment},
            {"configuration", run.key.configuration},
            {"seed", run.key.seed},
            {"version", run.version},
            {"step", run.step},
            {"attempts", run.attempts},
            {"started", run.started},
            {"seconds", run.seconds},
            {"peak", run.peak},
            {"machine", run.machine},
            {"revision", run.revision}};
  // [step, {name: value}], one for each step.
  Json steps = Json::array();
  for (const Metric& metric : metrics) {
    if (steps.empty() || steps.back()[0] != metric.step)
      steps.push_back(Json::array({metric.step, Json::object()}));
    steps.back()[1][metric.name] = std::isfinite(metric.value) ? Json(metric.value) : Json(nullptr);
  }
  line["metrics"] = std::move(steps);
  return {{"run", std::move(line)}};
}

Json line_of(const StoredRule& rule) {
  return {{"rule",
           {{"experiment", rule.experiment},
            {"claim", rule.claim},
            {"hash", rule.hash},
            {"text", rule.text},
            {"written", rule.written}}}};
}

void add_run(Store& store, const Json& json, Imported& imported) {
  const Json& configuration = json.at("configuration");
  if (!configuration.is_object()) throw Error(ErrorCode::Format, "has a configuration that is not an object");
  const RunInfo run{
      .key = {json.at("experiment").get<std::string>(), configuration, json.at("seed").get<std::uint64_t>()},
      .state = RunState::done,
      .step = json.at("step").get<std::uint64_t>(),
      .version = json.at("version").get<std::string>(),
      .attempts = json.at("attempts").get<std::size_t>(),
      .started = json.at("started").get<double>(),
      // Lines of version 0.1.0 may be without these.
      .seconds = json.value("seconds", 0.0),
      .peak = json.value("peak", std::uint64_t{0}),
      .machine = json.value("machine", ""),
      .revision = json.value("revision", "")};
  std::vector<Metric> metrics;
  for (const Json& step : json.at("metrics")) {
    for (const auto& [name, value] : step.at(1).items()) {
      metrics.push_back({name, step.at(0).get<std::uint64_t>(),
                         value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>()});
    }
  }
  imported.runs += store.import_run(run, metrics) ? 1 : 0;
}

void add_rule(Store& store, const Json& json, Imported& imported) {
  const StoredRule rule{json.at("experiment").get<std::string>(), json.at("claim").get<std::string>(),
                        json.at("hash").get<std::string>(), json.at("text").get<std::string>(),
                        json.at("written").get<double>()};
  imported.rules += store.import_rule(rule) ? 1 : 0;
}

void add_line(Store& store, std::string_view text, Imported& imported) {
  constexpr const char* expected =
      "expected {\"rule\": {...}} or {\"run\": {...}} of lab export --format runs";
  if (text.size() > longest_line) throw Error(ErrorCode::Format, "is longer than 16 MiB");
  const Json json = Json::parse(text, nullptr, false);
  try {
    if (json.is_object() && json.contains("run")) return add_run(store, json.at("run"), imported);
    if (json.is_object() && json.contains("rule")) return add_rule(store, json.at("rule"), imported);
  } catch (const Json::exception&) {
    throw Error(ErrorCode::Format, expected);
  }
  throw Error(ErrorCode::Format, expected);
}

}  // namespace

std::vector<StoredRule> rules_of(const Experiment& experiment) {
  std::vector<StoredRule> rules;
  for (const Claim& claim : experiment.claims) {
    rules.push_back({std::string(experiment.name), std::string(claim.name), hash_of(claim.rule),
                     to_json(claim.rule).dump(), 0.0});
  }
  return rules;
}

std::string run_lines(const Store& store, const Experiment& experiment) {
  const std::string name(experiment.name);
  std::string text;
  for (const RunInfo& run : store.runs(name)) {
    if (run.state == RunState::done) text += line_of(run, store.metrics(run.id)).dump() + "\n";
  }
  if (text.empty()) return text;
  std::string rules;
  for (const StoredRule& rule : store.rules(name)) rules += line_of(rule).dump() + "\n";
  return rules + text;
}

Imported import_lines(Store& store, const std::filesystem::path& file) {
  const MappedFile mapped(file);
  std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  Imported imported;
  store.together([&] {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      try {
        add_line(store, text.substr(0, end), imported);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: line {}: {}", file.string(), number, error.what()));
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  });
  return imported;
}

}  // namespace normscope::lab
