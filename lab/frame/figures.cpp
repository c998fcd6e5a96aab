#include "figures.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <normscope/core/rounding.hpp>

namespace normscope::lab {
namespace {

/// To as many digits as a screen can show.
double shortened(double value) { return rounded_to_digits(value, 5); }

Json row_of(const std::string& series, Json x, const Spread& spread) {
  Json row{{"series", series}, {"x", std::move(x)}, {"y", shortened(spread.mean)}};
  if (spread.count > 1) {
    row["low"] = shortened(spread.mean - spread.deviation);
    row["high"] = shortened(spread.mean + spread.deviation);
  }
  return row;
}

}  // namespace

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

Figure over_steps(std::string name, std::string caption, const Results& results, const Drawn& drawn) {
  Json rows = Json::array();
  for (const Json& value : results.all(drawn.series)) {
    const Results arm = results.where(drawn.series, value);
    std::map<std::uint64_t, std::size_t> measured;
    for (const Done& run : arm.runs()) {
      for (const Metric& metric : run.metrics) measured[metric.step] += metric.name == drawn.metric ? 1 : 0;
    }
    for (const auto& [step, count] : measured) {
      if (step < drawn.from || count < arm.runs().size()) continue;
      Json row = row_of(shown(value), step, arm.at(drawn.metric, step));
      // A band down to zero has no end on a logarithmic axis.
      if (drawn.logarithmic && row.contains("low"))
        row["low"] = std::max(row["low"].get<double>(), row["y"].get<double>() / 10.0);
      rows.push_back(std::move(row));
    }
  }
  return {std::move(name), std::move(caption),
          vega::curves(std::move(rows), {.x = "step", .y = drawn.title, .logarithmic_y = drawn.logarithmic})};
}

Figure at_end(std::string name, std::string caption, const Results& results, const Drawn& drawn,
              std::string_view across, const char* across_title) {
  Json rows = Json::array();
  for (const Json& place : results.all(across)) {
    const Results there = results.where(across, place);
    for (const Json& value : there.all(drawn.series)) {
      rows.push_back(row_of(shown(value), shown(place), there.where(drawn.series, value).last(drawn.metric)));
    }
  }
  return {
      std::move(name), std::move(caption),
      vega::dots(std::move(rows), {.x = across_title, .y = drawn.title, .logarithmic_y = drawn.logarithmic})};
}

}  // namespace normscope::lab
