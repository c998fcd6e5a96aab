#include "show.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/documents/text.hpp>

namespace normscope::lab {
namespace {

std::string_view verdict(std::optional<bool> holds) {
  return !holds ? "inconclusive" : *holds ? "reproduced" : "not reproduced";
}

Json nullable(std::optional<bool> holds) { return holds ? Json(*holds) : Json(nullptr); }

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
  return fmt::format("{} done of {} planned, {} size", counted(account.done, "run"), account.planned,
                     to_string(account.size));
}

}  // namespace

std::optional<bool> ExperimentResult::holds() const {
  const auto is = [](std::optional<bool> wanted) {
    return [wanted](const ClaimResult& judged) { return judged.finding.holds == wanted; };
  };
  if (std::any_of(claims.begin(), claims.end(), is(false))) return false;
  if (std::any_of(claims.begin(), claims.end(), is(std::nullopt))) return std::nullopt;
  return true;
}

ExperimentResult account(const Store& store, const Experiment& experiment, Size size) {
  const Plan plan = experiment.plan(size);
  const Results results = done(store, experiment, size);
  ExperimentResult account{.experiment = &experiment,
                           .size = size,
                           .done = results.runs().size(),
                           .planned = plan.configurations.size() * plan.seeds};
  for (const Claim& claim : experiment.claims) {
    const bool whole = account.done >= plan.configurations.size();
    account.claims.push_back(
        {&claim, whole ? claim.judge(results) : Finding{"not every arm has been run", std::nullopt}});
  }
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
  for (const auto& [claim, finding] : account.claims) {
    text += fmt::format("\n{}: {}\n  paper: {}\n  rule:  {}\n  ours:  {}\n  {}\n", claim->name, claim->says,
                        claim->paper, claim->rule, finding.ours, verdict(finding.holds));
  }
  return text;
}

Json about(const Experiment& experiment) {
  return {{"name", experiment.name},
          {"paper", experiment.paper},
          {"claim", experiment.claim},
          {"quick_seconds", experiment.quick_seconds},
          {"full_minutes", experiment.full_minutes}};
}

Json to_json(const ExperimentResult& account) {
  Json json = about(*account.experiment);
  json["size"] = to_string(account.size);
  json["runs"] = {{"done", account.done}, {"planned", account.planned}};
  json["claims"] = Json::array();
  std::size_t held = 0;
  for (const auto& [claim, finding] : account.claims) {
    json["claims"].push_back({{"name", claim->name},
                              {"claim", claim->says},
                              {"paper", claim->paper},
                              {"rule", claim->rule},
                              {"ours", finding.ours},
                              {"holds", nullable(finding.holds)}});
    held += finding.holds == true ? 1 : 0;
  }
  json["ours"] = fmt::format("{} of {} claims reproduced", held, account.claims.size());
  json["holds"] = nullable(account.holds());
  return json;
}

std::string to_markdown(const ExperimentResult& account, const std::string& image_folder) {
  std::string text =
      fmt::format("## {}\n\n{}. `{}`, {}.\n\n| claim | paper | ours | verdict |\n|---|---|---|---|\n",
                  account.experiment->name, open_ended(account.experiment->claim), run_command(account),
                  runs_of(account));
  for (const auto& [claim, finding] : account.claims) {
    text += fmt::format("| {} | {} | {} | {} |\n", cell(claim->says), cell(claim->paper), cell(finding.ours),
                        verdict(finding.holds));
  }
  text += "\nRules, fixed before the runs:\n";
  for (const ClaimResult& judged : account.claims)
    text += fmt::format("- {}: {}\n", judged.claim->name, judged.claim->rule);
  for (const Figure& figure : account.figures) {
    text += fmt::format("\n![{}]({}/{}-{}.svg)\n\n{} `{}`\n", cell(figure.caption), image_folder,
                        account.experiment->name, figure.name, figure.caption, show_command(account));
  }
  return text;
}

void write_figures(const ExperimentResult& account, const std::filesystem::path& folder) {
  for (const Figure& figure : account.figures) {
    Json specification = figure.specification;
    specification["title"] = {
        {"text", lines_of(figure.caption)}, {"subtitle", show_command(account)}, {"anchor", "start"}};
    AtomicFile file(folder / fmt::format("{}-{}.vl.json", account.experiment->name, figure.name));
    file.write(json_text(specification));
    file.write("\n");
    file.commit();
  }
}

}  // namespace normscope::lab
