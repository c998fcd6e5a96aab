#include "show.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>

namespace normscope::lab {
namespace {

/// Escapes what would end a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

/// Breaks a title into lines that fit the width of a figure.
Json lines_of(const std::string& text) {
  constexpr std::size_t longest = 76;
  Json lines = Json::array();
  std::string line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > longest) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  lines.push_back(line);
  return lines;
}

/// Drops the full stop at the end of a sentence, if there is one.
std::string_view open_ended(std::string_view sentence) {
  return sentence.ends_with('.') ? sentence.substr(0, sentence.size() - 1) : sentence;
}

std::string runs_of(const ExperimentResult& account) {
  return fmt::format("{} done of {} planned{}", counted(account.done, "run"), account.planned,
                     account.size == Size::quick ? ", quick size" : "");
}

/// "paper's size: …; ours: …, 1/20".
std::string sizes_of(const Experiment& experiment) {
  const Scale& scale = experiment.scale;
  return fmt::format("Paper's size: {}. Ours: {}{}.", scale.paper, scale.ours,
                     scale.factor > 1.0 ? fmt::format(", 1/{:.3g} of it", scale.factor) : "");
}

std::string interval_of(const ClaimResult& result) {
  if (!result.verdict.interval) return "";
  return fmt::format("{:.3g} to {:.3g}", result.verdict.interval->low, result.verdict.interval->high);
}

/// "Run on AMD EPYC 9B14, 2 threads, version 0.1.0; ….", or nothing.
std::string origins_of(const ExperimentResult& account) {
  return account.origins.empty() ? "" : fmt::format("Run on {}.", fmt::join(account.origins, "; "));
}

/// "8 s", "12 min", "3.5 h".
std::string duration(double seconds) {
  if (seconds < 90.0) return fmt::format("{:.0f} s", std::max(1.0, seconds));
  return seconds < 5400.0 ? fmt::format("{:.0f} min", seconds / 60.0)
                          : fmt::format("{:.3g} h", seconds / 3600.0);
}

/// The rule with its test and its least effect.
std::string rule_of(const Rule& rule) {
  std::string text(rule.says);
  const double percent = 100.0 * rule.confidence;
  switch (rule.test) {
    case Test::every_case: text += "; a counterexample refutes it"; break;
    case Test::equivalence:
      text += fmt::format("; {:.3g} % interval of the mean (Student) within ± {:.3g}", percent, rule.least);
      break;
    case Test::mean:
    case Test::share:
      text +=
          fmt::format("; {:.3g} % interval of the {}, at least {:.3g}, absent at {:.3g}", percent,
                      rule.test == Test::mean ? "mean (Student)" : "share (Wilson)", rule.least, rule.absent);
  }
  text += fmt::format("; {} or more", counted(rule.seeds, "seed"));
  if (!rule.missing.empty()) text += fmt::format("; cannot be refuted by these runs: {}", rule.missing);
  return text;
}

/// What runs like these can see, and how the choice of the weakest set widens the interval.
std::string power_of(const ClaimResult& result) {
  std::string text;
  const std::size_t sets = result.finding.chosen_from;
  if (sets > 1) text = fmt::format("The weakest of {}, whose interval holds for all at once. ", sets);
  if (result.seen) {
    text += result.claim->rule.test == Test::equivalence
                ? fmt::format("Such runs find equal arms within ± {:.3g} in four of five repetitions. ",
                              *result.seen)
                : fmt::format("Such runs see {:.3g} or more in four of five repetitions. ", *result.seen);
  } else if (result.verdict.interval) {
    text += "So few runs see no share in four of five repetitions. ";
  }
  return text;
}

/// Whether the store proves for every claim that its rule is older than its runs.
bool rules_first(const ExperimentResult& account) {
  return account.done > 0 && std::all_of(account.claims.begin(), account.claims.end(),
                                         [](const ClaimResult& it) { return it.runs_before == 0; });
}

ClaimResult judged(const Claim& claim, const Experiment& experiment, Size size, const Results& results,
                   bool whole, const std::vector<StoredRule>& rules) {
  ClaimResult result{.claim = &claim, .hash = hash_of(claim.rule), .runs = results.runs().size()};
  if (!whole) {
    result.finding = {results.runs().empty() ? "no run" : "not every arm has been run"};
    result.verdict = {.reason = result.finding.ours};
  } else {
    result.finding = claim.judge(results);
    const Finding& found = result.finding;
    result.verdict =
        doubted(verdict(claim.rule, experiment.scale, found.effects, results.seeds(), found.chosen_from),
                claim.doubt);
    result.seen = least_seen(claim.rule, found.effects, results.seeds(), found.chosen_from);
  }
  if (size == Size::quick) result.verdict = {.reason = "quick size"};
  const auto stored = std::find_if(rules.begin(), rules.end(), [&](const StoredRule& rule) {
    return rule.claim == claim.name && rule.hash == result.hash;
  });
  result.runs_before = static_cast<std::size_t>(
      std::count_if(results.runs().begin(), results.runs().end(),
                    [&](const Done& run) { return stored == rules.end() || run.started < stored->written; }));
  return result;
}

}  // namespace

std::string provenance(const ClaimResult& result) {
  if (result.runs == 0) return "no run";
  if (result.runs_before == 0) return fmt::format("rule stored before its {}", counted(result.runs, "run"));
  return fmt::format("rule written after {} of {}", result.runs_before, counted(result.runs, "run"));
}

std::size_t ExperimentResult::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::count_if(claims.begin(), claims.end(), [&](const ClaimResult& result) {
    return result.verdict.outcome == outcome;
  }));
}

ExperimentResult account(const Store& store, const Experiment& experiment, Size size) {
  const Plan plan = experiment.plan(size);
  const Results results = done(store, experiment, size);
  ExperimentResult account{.experiment = &experiment,
                           .size = size,
                           .done = results.runs().size(),
                           .planned = plan.configurations.size() * plan.seeds};
  for (const Done& run : results.runs()) {
    if (run.origin.empty()) continue;
    const auto there = std::lower_bound(account.origins.begin(), account.origins.end(), run.origin);
    if (there == account.origins.end() || *there != run.origin) account.origins.insert(there, run.origin);
  }
  const bool whole = account.done >= plan.configurations.size();
  const std::vector<StoredRule> rules = store.rules(std::string(experiment.name));
  for (const Claim& claim : experiment.claims)
    account.claims.push_back(judged(claim, experiment, size, results, whole, rules));
  if (account.done > 0 && experiment.figures != nullptr) account.figures = experiment.figures(results);
  return account;
}

std::string run_command(const ExperimentResult& account) {
  return fmt::format("normscope lab run {}{}", account.experiment->name,
                     account.size == Size::quick ? " --quick" : "");
}

std::string show_command(const ExperimentResult& account) {
  return fmt::format("normscope lab show {}{} -o FOLDER", account.experiment->name,
                     account.size == Size::quick ? " --quick" : "");
}

std::string to_text(const ExperimentResult& account) {
  std::string text = fmt::format("{} ({}): {}\n{}\n", account.experiment->name, account.experiment->paper,
                                 account.experiment->claim, runs_of(account));
  if (account.size == Size::full) text += sizes_of(*account.experiment) + "\n";
  if (!account.origins.empty()) text += origins_of(account) + "\n";
  for (const ClaimResult& result : account.claims) {
    const std::string interval = interval_of(result);
    text += fmt::format("\n{}: {}\n  paper: {}\n  rule:  {}\n         {}\n  ours:  {}{}\n  {}\n",
                        result.claim->name, result.claim->says, result.claim->paper,
                        rule_of(result.claim->rule), provenance(result), result.finding.ours,
                        interval.empty() ? "" : fmt::format("\n         effect {}", interval),
                        to_string(result.verdict));
  }
  return text;
}

std::string to_text(const Forecast& expected, const Experiment& experiment, Size size, unsigned processes) {
  const std::size_t left = expected.runs - expected.done;
  std::string text =
      fmt::format("{}, {} size: {} ({}, {}), {} done, {} left\n", experiment.name, to_string(size),
                  counted(expected.runs, "run"), counted(expected.configurations, "configuration"),
                  counted(expected.seeds, "seed"), expected.done, left);
  if (left > 0) {
    const std::size_t busy = std::min<std::size_t>(std::max(1U, processes), left);
    text += fmt::format("about {} of one core, {} in {} process{} ({})\n", duration(expected.seconds),
                        duration(expected.seconds / static_cast<double>(busy)), busy, busy == 1 ? "" : "es",
                        expected.measured > 0
                            ? fmt::format("from {}", counted(expected.measured, "completed run"))
                            : std::string("the experiment's own estimate"));
  }
  text += expected.peak > 0 ? fmt::format("at most {:.0f} MiB a process so far",
                                          static_cast<double>(expected.peak) / double{1U << 20U})
                            : std::string("memory: not known before a run is complete");
  return text;
}

std::string_view to_string(Backend backend) {
  switch (backend) {
    case Backend::own: return "own";
    case Backend::torch: return "torch";
    case Backend::torch_or_gpu: return "torch or GPU";
  }
  return "";
}

results::LabExperiment about(const Experiment& experiment) {
  return {.name = std::string(experiment.name),
          .paper = std::string(experiment.paper),
          .claim = std::string(experiment.claim),
          .quick_seconds = experiment.quick_seconds,
          .full_minutes = experiment.full_minutes,
          .backend = std::string(to_string(experiment.backend))};
}

results::LabExperiment entry(const ExperimentResult& account) {
  const Scale& scale = account.experiment->scale;
  results::LabExperiment entry = about(*account.experiment);
  results::LabResults& found = entry.results.emplace();
  found.size = to_string(account.size);
  found.paper_size = scale.paper;
  found.our_size = scale.ours;
  found.factor = scale.factor;
  found.done = account.done;
  found.planned = account.planned;
  found.origins = account.origins;
  for (const ClaimResult& result : account.claims) {
    const Rule& rule = result.claim->rule;
    const auto& interval = result.verdict.interval;
    found.claims.push_back(
        {.name = std::string(result.claim->name),
         .claim = std::string(result.claim->says),
         .paper = std::string(result.claim->paper),
         .kind = is_identity(*result.claim) ? "identity" : "measurement",
         .made_by = result.claim->ours ? "us" : "the paper",
         .rule = {.says = std::string(rule.says),
                  .test = std::string(to_string(rule.test)),
                  .seeds = rule.seeds,
                  .least = rule.least,
                  .absent = rule.absent,
                  .missing = std::string(rule.missing),
                  .confidence = rule.confidence,
                  .hash = result.hash,
                  .runs = result.runs,
                  .runs_before = result.runs_before,
                  .provenance = provenance(result)},
         .ours = result.finding.ours,
         .interval = interval ? std::optional(std::array{interval->low, interval->high}) : std::nullopt,
         .outcome = std::string(to_string(result.verdict.outcome)),
         .factor = result.verdict.factor,
         .verdict = to_string(result.verdict)});
  }
  found.ours =
      fmt::format("{} of {} claims reproduced", account.count(Outcome::reproduced), account.claims.size());
  return entry;
}

std::string to_markdown(const ExperimentResult& account, const std::string& image_folder) {
  std::string text = fmt::format(
      "## {}\n\n{}. `{}`, {}. {}{}{}\n\n| claim | paper | ours | interval of the effect | verdict |\n"
      "|---|---|---|---|---|\n",
      account.experiment->name, open_ended(account.experiment->claim), run_command(account), runs_of(account),
      sizes_of(*account.experiment), account.origins.empty() ? "" : " ", origins_of(account));
  for (const ClaimResult& result : account.claims) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", cell(result.claim->says), cell(result.claim->paper),
                        cell(result.finding.ours), interval_of(result), cell(to_string(result.verdict)));
  }
  text += rules_first(account) ? "\nRules, fixed before the runs:\n" : "\nRules:\n";
  constexpr std::size_t hash_shown = 12;
  for (const ClaimResult& result : account.claims) {
    text += fmt::format("- {}: {}. {}`{}`, {}\n", result.claim->name, rule_of(result.claim->rule),
                        power_of(result), result.hash.substr(0, hash_shown), provenance(result));
  }
  for (const Figure& figure : account.figures) {
    const std::string file = fmt::format("{}/{}-{}", image_folder, account.experiment->name, figure.name);
    text += fmt::format("\n![{}]({}.svg)\n\n{} `{}`\n", cell(figure.caption), file, figure.caption,
                        show_command(account));
  }
  return text;
}

void write_figures(const ExperimentResult& account, const std::filesystem::path& folder) {
  for (const Figure& figure : account.figures) {
    Json specification = figure.specification;
    specification["title"] = {
        {"text", lines_of(figure.caption)}, {"subtitle", show_command(account)}, {"anchor", "start"}};
    // No limit: names that begin with the same words would be cut to the same label.
    specification["config"]["legend"]["labelLimit"] = 0;
    AtomicFile file(folder / fmt::format("{}-{}.vl.json", account.experiment->name, figure.name));
    file.write(json_text(specification));
    file.write("\n");
    file.commit();
  }
}

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
