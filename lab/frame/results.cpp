#include "results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::lab {
namespace {

Spread spread_of(const std::vector<double>& numbers) {
  NORMSCOPE_ASSERT(!numbers.empty());
  const auto count = static_cast<double>(numbers.size());
  Spread result{.least = numbers.front(), .most = numbers.front(), .count = numbers.size()};
  for (const double number : numbers) {
    result.mean += number / count;
    result.least = std::min(result.least, number);
    result.most = std::max(result.most, number);
  }
  double squares = 0.0;
  for (const double number : numbers) squares += (number - result.mean) * (number - result.mean);
  if (numbers.size() > 1) result.deviation = std::sqrt(squares / (count - 1));
  return result;
}

}  // namespace

bool Done::is(std::string_view key, const Json& value) const {
  const auto found = configuration.find(key);
  return found != configuration.end() && *found == value;
}

double Done::at(std::string_view name, std::uint64_t step) const {
  for (auto metric = metrics.rbegin(); metric != metrics.rend(); ++metric) {
    if (metric->step <= step && metric->name == name) return metric->value;
  }
  throw Error(ErrorCode::Argument, fmt::format("lab: no \"{}\" was measured up to that step", name));
}

double Done::last(std::string_view name) const { return at(name, std::numeric_limits<std::uint64_t>::max()); }

bool Done::has(std::string_view name) const {
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](const Metric& metric) { return metric.name == name; });
}

Results Results::where(std::string_view key, const Json& value) const {
  std::vector<Done> found;
  for (const Done& run : runs_) {
    if (run.is(key, value)) found.push_back(run);
  }
  std::stable_sort(found.begin(), found.end(), [](const Done& a, const Done& b) { return a.seed < b.seed; });
  return Results(std::move(found));
}

std::vector<Json> Results::all(std::string_view key) const {
  std::vector<Json> values;
  for (const Done& run : runs_) {
    const auto found = run.configuration.find(key);
    if (found == run.configuration.end()) continue;
    if (std::find(values.begin(), values.end(), *found) == values.end()) values.push_back(*found);
  }
  return values;
}

std::vector<double> Results::numbers(const std::function<double(const Done&)>& number) const {
  std::vector<double> all;
  all.reserve(runs_.size());
  for (const Done& run : runs_) all.push_back(number(run));
  return all;
}

Spread Results::spread(const std::function<double(const Done&)>& number) const {
  return spread_of(numbers(number));
}

Spread Results::last(std::string_view name) const {
  return spread([&](const Done& run) { return run.last(name); });
}

Spread Results::at(std::string_view name, std::uint64_t step) const {
  return spread([&](const Done& run) { return run.at(name, step); });
}

std::size_t Results::seeds() const {
  std::set<std::uint64_t> seen;
  for (const Done& run : runs_) seen.insert(run.seed);
  return seen.size();
}

Results::Paired Results::paired(const Results& first, const Results& second,
                                const std::function<double(const Done&)>& number) {
  Paired result;
  for (const Done& one : first.runs_) {
    for (const Done& other : second.runs_) {
      if (one.seed == other.seed) result.differences.push_back(number(other) - number(one));
    }
  }
  if (result.differences.empty()) return result;
  result.difference = spread_of(result.differences);
  result.larger = static_cast<std::size_t>(
      std::count_if(result.differences.begin(), result.differences.end(), [](double d) { return d > 0.0; }));
  return result;
}

}  // namespace normscope::lab
