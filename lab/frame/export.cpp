#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <normscope/results/documents.hpp>

#include "show.hpp"

namespace normscope::lab {
namespace {

/// RFC 4180.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string csv_cell(const Json& value) {
  return value.is_null() ? "" : quoted(value.is_string() ? value.get<std::string>() : value.dump());
}

/// Columns that are the same in every row of a run; the configuration's keys are columns.
Json row_of(const RunInfo& run, const std::vector<std::string>& keys) {
  const Json& configuration = run.key.configuration;
  Json row{{"experiment", run.key.experiment}, {"run", run.id}, {"seed", run.key.seed}};
  row["version"] = run.version;
  row["done"] = run.state == RunState::done;
  for (const std::string& key : keys) {
    const auto found = configuration.find(key);
    row["configuration." + key] = found == configuration.end() ? Json(nullptr) : *found;
  }
  return row;
}

std::string line_of(const Json& row, TableFormat format) {
  if (format == TableFormat::json_lines) return json_text(row) + "\n";
  std::string line;
  for (const auto& [key, value] : row.items()) line += (line.empty() ? "" : ",") + csv_cell(value);
  return line + "\n";
}

}  // namespace

std::string exported(const Store& store, const Experiment& experiment, TableFormat format) {
  const std::vector<RunInfo> runs = store.runs(std::string(experiment.name));
  std::vector<std::string> keys;
  for (const RunInfo& run : runs) {
    for (const auto& [key, value] : run.key.configuration.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  std::string text;
  for (const RunInfo& run : runs) {
    Json row = row_of(run, keys);
    for (const Metric& metric : store.metrics(run.id)) {
      row["step"] = metric.step;
      row["metric"] = metric.name;
      row["value"] = std::isfinite(metric.value) ? Json(metric.value) : Json(nullptr);
      if (text.empty() && format == TableFormat::csv) {
        Json heads = Json::array();
        for (const auto& [key, value] : row.items()) heads.push_back(key);
        text += line_of(heads, format);
      }
      text += line_of(row, format);
    }
  }
  return text;
}

}  // namespace normscope::lab
