#include "plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

namespace normscope::lab {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::Format, fmt::format("{}: {}", file.string(), what));
}

Json with_size(Size size, const Json& configuration) {
  Json whole{{"size", to_string(size)}};
  for (const auto& [key, value] : configuration.items()) whole[key] = value;
  return whole;
}

/// All combinations of `configurations` with `values` for `key`.
std::vector<Json> spread_over(const std::vector<Json>& configurations, const std::string& key,
                              const std::vector<Json>& values, const Experiment& experiment) {
  std::vector<Json> result;
  for (const Json& configuration : configurations) {
    if (!configuration.contains(key)) {
      throw Error(ErrorCode::Argument,
                  fmt::format("lab: {} has no parameter \"{}\" to sweep over, expected a key of {}",
                              experiment.name, key, configuration.dump()));
    }
    for (const Json& value : values) {
      Json changed = configuration;
      changed[key] = value;
      // Configurations that differed only in this key are equal now.
      if (std::find(result.begin(), result.end(), changed) == result.end()) result.push_back(changed);
    }
  }
  return result;
}

/// "AMD EPYC 9B14, 2 threads, version 0.1.0 of commit 8367bebbf066".
std::string origin_of(const RunInfo& run) {
  if (run.machine.empty()) return "";
  return fmt::format("{}, version {}{}{}", run.machine, run.version,
                     run.revision.empty() ? "" : " of commit ", run.revision);
}

/// Processor time of completed runs.
struct Times {
  double seconds = 0.0;
  std::size_t runs = 0;

  void add(double more) {
    seconds += more;
    ++runs;
  }
  [[nodiscard]] double mean() const { return seconds / static_cast<double>(runs); }
};

/// The experiment's own estimate for one run.
double expected_seconds(const Experiment& experiment, Size size) {
  const Plan plan = experiment.plan(size);
  const double all = size == Size::quick ? experiment.quick_seconds : 60.0 * experiment.full_minutes;
  return all / static_cast<double>(plan.configurations.size() * plan.seeds);
}

}  // namespace

std::string_view to_string(Size size) { return size == Size::quick ? "quick" : "full"; }

Sweep read_sweep(const std::filesystem::path& file) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  const MappedFile mapped(file);
  if (mapped.bytes().size() > largest) refuse(file, "is larger than 1 MiB, expected a small JSON file");
  const auto* text = reinterpret_cast<const char*>(mapped.bytes().data());
  const Json json = Json::parse(text, text + mapped.bytes().size(), nullptr, false);
  if (!json.is_object()) refuse(file, "is not a JSON object, expected {\"values\": {...}, \"seeds\": [...]}");
  Sweep sweep;
  for (const auto& [key, value] : json.items()) {
    if (key == "seeds" && value.is_array()) {
      for (const Json& seed : value) {
        if (!seed.is_number_unsigned()) refuse(file, "has a seed that is not an integer >= 0");
        sweep.seeds.push_back(seed.get<std::uint64_t>());
      }
    } else if (key == "values" && value.is_object()) {
      for (const auto& [name, values] : value.items()) {
        if (!values.is_array() || values.empty())
          refuse(file, fmt::format("has no list of values under \"{}\"", name));
        sweep.values.emplace_back(name, values.get<std::vector<Json>>());
      }
    } else {
      refuse(file, fmt::format("has \"{}\", expected \"values\" (an object) and \"seeds\" (a list)", key));
    }
  }
  return sweep;
}

std::vector<RunKey> planned(const Experiment& experiment, Size size, std::size_t seeds,
                            const std::optional<Sweep>& sweep) {
  const Plan plan = experiment.plan(size);
  std::vector<Json> configurations = plan.configurations;
  std::vector<std::uint64_t> wanted = sweep ? sweep->seeds : std::vector<std::uint64_t>{};
  if (sweep) {
    for (const auto& [key, values] : sweep->values)
      configurations = spread_over(configurations, key, values, experiment);
  }
  if (wanted.empty()) {
    for (std::uint64_t seed = 1; seed <= (seeds == 0 ? plan.seeds : seeds); ++seed) wanted.push_back(seed);
  }
  std::vector<RunKey> keys;
  // Seed by seed, so that the completed runs are comparable if the work is stopped early.
  for (const std::uint64_t seed : wanted) {
    for (const Json& configuration : configurations)
      keys.push_back({std::string(experiment.name), with_size(size, configuration), seed});
  }
  return keys;
}

Forecast forecast(const Store* store, const Experiment& experiment, Size size, std::span<const RunKey> keys) {
  std::set<std::pair<std::string, std::uint64_t>> complete;
  std::map<std::string, Times> times;  // by configuration
  Times all;
  Forecast result{.runs = keys.size()};
  if (store != nullptr) {
    for (const RunInfo& run : store->runs(std::string(experiment.name))) {
      if (run.state != RunState::done) continue;
      const std::string configuration = run.key.configuration.dump();
      complete.emplace(configuration, run.key.seed);
      if (run.seconds <= 0.0 || run.key.configuration.value("size", "") != to_string(size)) continue;
      times[configuration].add(run.seconds);
      all.add(run.seconds);
      result.peak = std::max(result.peak, run.peak);
    }
  }
  result.measured = all.runs;
  std::set<std::string> configurations;
  std::set<std::uint64_t> seeds;
  const double usual = all.runs > 0 ? all.mean() : expected_seconds(experiment, size);
  for (const RunKey& key : keys) {
    const std::string configuration = key.configuration.dump();
    configurations.insert(configuration);
    seeds.insert(key.seed);
    if (complete.contains({configuration, key.seed})) {
      ++result.done;
    } else {
      const auto known = times.find(configuration);
      result.seconds += known != times.end() ? known->second.mean() : usual;
    }
  }
  result.configurations = configurations.size();
  result.seeds = seeds.size();
  return result;
}

Results done(const Store& store, const Experiment& experiment, Size size) {
  std::vector<Json> own;
  for (const Json& configuration : experiment.plan(size).configurations)
    own.push_back(with_size(size, configuration));
  std::vector<Done> found;
  for (const RunInfo& run : store.runs(std::string(experiment.name))) {
    if (run.state != RunState::done) continue;
    const Json& configuration = run.key.configuration;
    if (std::find(own.begin(), own.end(), configuration) == own.end()) continue;
    found.push_back({configuration, run.key.seed, store.metrics(run.id), run.started, origin_of(run)});
  }
  return Results(std::move(found));
}

}  // namespace normscope::lab
