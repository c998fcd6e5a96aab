#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/analysis/trace.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/results/words.hpp>

#include "command.hpp"
#include "report_page.hpp"
#include "text_input.hpp"

namespace normscope::cli {
namespace {

struct ReportOptions {
  TextInput input;
  std::string output = "report.html";
  std::string activations;
  bool deep = false;
  bool no_vocabulary = false;
  std::optional<double> budget;
};

selectability::VocabularyOptions vocabulary_options(const ReportOptions& options) {
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  selectability::VocabularyOptions result{.skip = options.no_vocabulary};
  if (options.budget) {
    result.budget = selectability::budget_unit * *options.budget;
    result.most_work = selectability::work_within(result.budget);
  }
  if (options.deep) result.most_work = no_limit;
  if (options.deep && !options.budget) result.budget = no_limit;
  return result;
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

/// The verdict, the first causes, and a line about the page: six lines at most.
void summarize(const Session& session, const ReportOptions& options, const analysis::Report& report) {
  session.say(printable(results::verdict(report)));
  for (std::size_t i = 0; i < std::min(analysis::first_causes, report.causes.size()); ++i) {
    session.say("  " + printable(results::describe(report.causes[i], report).line()));
  }
  const std::string others =
      report.model.other_norms.empty() ? "" : "; not analysed: " + models::other_norms_text(report.model);
  session.say(printable(fmt::format(
      "{}: {}, {}, {}{}{}", options.output, report.model.title, counted(report.norms.size(), "norm"),
      counted(report.findings.size(), "finding"), others, beyond_budget(report))));
}

/// A text, and what the norms did with its tokens.
struct Seen {
  Context context;
  analysis::ObservedTokens observed;
};

/// Null unless a text is given.
std::unique_ptr<const Seen> see(const Session& session, Inputs& inputs, const ReportOptions& options) {
  const TextInput& input = options.input;
  if (!input.given()) {
    if (input.names.empty() && input.activation.empty() && options.activations.empty()) return nullptr;
    throw CLI::ValidationError("--text",
                               "expected --text or --tokens beside --names, --activation and --activations");
  }
  auto seen = std::make_unique<Seen>(Seen{context_of(input, inputs), {}});
  const Context& context = seen->context;
  seen->observed = analysis::observe_tokens(
      context.checkpoint, context.model, context.tokens,
      {.budget = vocabulary_options(options).budget, .threads = session.threads}, session.progress());
  seen->observed.within.tokens = context.names;
  return seen;
}

void say_activations(const Session& session, const ReportOptions& options, const Seen& seen) {
  const bool whole = seen.context.whole && seen.observed.tokens == seen.context.tokens.size();
  session.say(printable(fmt::format(
      "activations: {} saw {} of {}{}", counted(seen.observed.norms.size(), "norm"),
      counted(seen.observed.tokens, "token"), options.input.file.empty() ? "--tokens" : options.input.file,
      whole ? "" : ", its beginning")));
}

int run_report(const Session& session, Inputs& inputs, Outputs& outputs, const ReportOptions& options) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(options.input.model.path);
  const models::Model& model = inputs.model_of(checkpoint, options.input.model.stated);
  const std::unique_ptr<const Seen> seen = see(session, inputs, options);
  const analysis::Report report =
      analysis::audit(checkpoint, model, session.threads, session.progress(), vocabulary_options(options));
  nlohmann::ordered_json activations;
  if (seen) {
    const analysis::ObservedTokens& found = seen->observed;
    activations = {{"document", results::activations(options.input.model.path, found.norms,
                                                     found.not_understood, &found.within)},
                   {"charts", figures::activation_charts(found.norms, &found.within)}};
  }
  outputs.write_text(options.output, [&] {
    return report::fill(json_text(results::report(report), 1), json_text(figures::charts(report)),
                        json_text(activations));
  });
  outputs.write_text(options.activations, [&] { return json_text(activations["document"], 1); });
  outputs.commit([&] { return json_text(results::report(report, options.deep), 1); });
  summarize(session, options, report);
  if (seen) say_activations(session, options, *seen);
  return ok;
}

}  // namespace

Command report_command() {
  const auto options = std::make_shared<ReportOptions>();
  return {.name = "report",
          .text = "Analyse norms, heads and vocabulary; write one HTML page",
          .inputs = {input("MODEL", options->input.model.path, "Checkpoint to analyse").required()},
          .outputs = {output("-o,--output", options->output).says("the HTML page").usually("report.html"),
                      output("--activations", options->activations)},
          .options = joined({option("--deep", options->deep),
                             option("--budget", options->budget)
                                 .says("for heads, for use and ranges of the maps behind norms, for the "
                                       "vocabulary and for a sentence that the model is run on, each; "
                                       "likewise for a text")
                                 .usually("40; no limit with --deep"),
                             option("--no-vocabulary", options->no_vocabulary).excludes({"--budget"}),
                             option("--text", options->input.file).excludes({"--tokens"})},
                            text_options(options->input)),
          .examples = {"normscope report models/kjv_gpt",
                       "normscope report models/kjv_gpt --deep -o deep.html --json deep.json"},
          .run = with(run_report, options)};
}

}  // namespace normscope::cli
