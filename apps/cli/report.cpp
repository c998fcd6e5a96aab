#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/results/words.hpp>

#include "command.hpp"
#include "report_page.hpp"

namespace normscope::cli {
namespace {

struct ReportOptions {
  ModelName model;
  std::string output = "report.html";
  bool deep = false;
  bool no_vocabulary = false;
  std::optional<double> budget;
};

constexpr std::size_t shown_findings = 5;

selectability::VocabularyOptions vocabulary_options(const ReportOptions& options) {
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  selectability::VocabularyOptions result{.skip = options.no_vocabulary};
  if (options.deep) result.most_work = result.budget = no_limit;
  if (options.budget) result.budget = selectability::budget_unit * *options.budget;
  return result;
}

/// Extremes of the images.
void say_images(const Session& session, const analysis::Report& report) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  double stretch = 0.0;
  for (const analysis::NormReport& norm : report.norms) {
    if (!norm.image || norm.image->lengths.empty()) continue;
    least = std::min(least, norm.image->condition);
    most = std::max(most, norm.image->condition);
    stretch = std::max(stretch, norm.image->top_axes[0].ratio_to_median);
  }
  if (most == 0.0) return;
  session.say(fmt::format(
      "  images: condition numbers {} to {}, longest semi-axis at most {} times the median",
      results::format_number(least), results::format_number(most), results::format_at_most(stretch)));
}

/// The smallest and the largest score spreads of the heads.
void say_heads(const Session& session, const analysis::Report& report) {
  std::size_t bounded = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (const heads::HeadReach& head : report.heads) {
    if (!head.attention) continue;
    ++bounded;
    least = std::min(least, head.attention->sharpest.upper);
    most = std::max(most, head.attention->sharpest.upper);
  }
  if (report.heads.empty()) return;
  session.say(fmt::format(
      "  heads: {} of {} bounded{}", bounded, report.heads.size(),
      bounded == 0
          ? ""
          : fmt::format(", spread (largest difference between the scores of two keys) at most {} to {}",
                        results::format_at_most(least), results::format_at_most(most))));
}

/// The largest number computed from a norm's output, and the number types that it would overflow.
void say_ranges(const Session& session, const analysis::Report& report) {
  const analysis::RangeSummary summary = analysis::summarize(report.ranges);
  if (summary.readers == 0) return;
  std::string text = fmt::format("  ranges: {} of {} (linear maps that read a norm) bounded", summary.known,
                                 counted(summary.readers, "reader"));
  if (summary.largest != nullptr) {
    const std::string least = results::format_number(summary.least_ratio);
    const std::string most = results::format_number(summary.most_ratio);
    text += fmt::format(", numbers up to {} over every input ({} times typical)",
                        results::format_at_most(summary.largest->size()),
                        least == most ? most : fmt::format("{} to {}", least, most));
    if (summary.never_positive > 0) {
      text += fmt::format(", {} never positive", counted(summary.never_positive, "output"));
    }
  }
  for (const analysis::NumberType& type : analysis::number_types) {
    if (const std::size_t readers = analysis::overflowing(report.ranges, type); readers > 0) {
      text += fmt::format("; {} may overflow in {}", type.title, readers);
    }
  }
  session.say(text);
}

/// How many tokens can be output.
void say_vocabulary(const Session& session, const analysis::Report& report) {
  if (!report.model.vocabulary) return;
  if (!report.vocabulary.survey) {
    session.say(
        "  vocabulary: " + printable(report.vocabulary.refused) +
        (report.vocabulary.left_out ? "; `normscope report --deep` and `normscope reach` decide it" : ""));
    return;
  }
  const selectability::Survey& survey = *report.vocabulary.survey;
  session.say(fmt::format("  vocabulary: {} of {} can have the largest logit, {} never can, {} undecided",
                          survey.with(proof::Answer::yes).size(), counted(survey.tokens.size(), "token"),
                          survey.with(proof::Answer::no).size(),
                          survey.with(proof::Answer::undecided).size()));
}

/// "; beyond the budget: 68 of 144 heads, 1932 of 32000 tokens", or empty.
std::string beyond_budget(const analysis::Report& report) {
  const analysis::LeftOut left = analysis::left_out(report);
  if (left.nothing()) return "";
  std::vector<std::string> parts;
  const auto add = [&](std::size_t count, std::size_t of, const char* noun) {
    if (count > 0) parts.push_back(fmt::format("{} of {}", count, counted(of, noun)));
  };
  add(left.heads, report.heads.size(), "head");
  add(left.readers, analysis::summarize(report.ranges).readers, "reader");
  if (report.model.vocabulary) add(left.tokens, report.model.vocabulary->size, "token");
  return fmt::format("; beyond the budget: {}", fmt::join(parts, ", "));
}

void summarize(const Session& session, const ReportOptions& options, const analysis::Report& report) {
  session.say(fmt::format("{}: {}, {}, {}{}", printable(options.output), printable(report.model.title),
                          counted(report.norms.size(), "norm"), counted(report.findings.size(), "finding"),
                          beyond_budget(report)));
  if (!report.model.other_norms.empty()) {
    session.say("  not analysed: " + printable(models::other_norms_text(report.model)));
  }
  say_images(session, report);
  say_heads(session, report);
  say_ranges(session, report);
  say_vocabulary(session, report);
  const std::size_t shown = std::min(shown_findings, report.findings.size());
  for (std::size_t i = 0; i < shown; ++i) {
    session.say("  - " + printable(results::describe(report.findings[i], report).text));
  }
  const std::size_t left = report.findings.size() - shown;
  if (left > 0) session.say(fmt::format("  and {} more in the page", left));
}

int run_report(const Session& session, Inputs& inputs, Outputs& outputs, const ReportOptions& options) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(options.model.path);
  const analysis::Report report =
      analysis::audit(checkpoint, inputs.model_of(checkpoint, options.model.stated), session.threads,
                      session.progress(), vocabulary_options(options));
  outputs.write_text(options.output, [&] {
    return report::fill(json_text(results::report(report), 1), json_text(figures::charts(report)));
  });
  outputs.commit([&] { return json_text(results::report(report, options.deep), 1); });
  summarize(session, options, report);
  return ok;
}

}  // namespace

Command report_command() {
  const auto options = std::make_shared<ReportOptions>();
  return {.name = "report",
          .text = "Analyse norms, heads and vocabulary; write one HTML page",
          .inputs = {input("MODEL", options->model.path, "Checkpoint to analyse").required()},
          .outputs = {output("-o,--output", options->output).says("the HTML page").usually("report.html")},
          .options = joined({option("--deep", options->deep),
                             option("--budget", options->budget)
                                 .says("for heads, for the ranges behind norms, and for tokens whose "
                                       "reachability needs a search, each")
                                 .usually("40; no limit with --deep"),
                             option("--no-vocabulary", options->no_vocabulary).excludes({"--budget"})},
                            model_options(options->model)),
          .examples = {"normscope report models/kjv_gpt",
                       "normscope report models/kjv_gpt --deep -o deep.html --json deep.json"},
          .run = with(run_report, options)};
}

}  // namespace normscope::cli
