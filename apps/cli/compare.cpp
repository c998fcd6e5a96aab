#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/file.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/rewrite/compare.hpp>

#include "command.hpp"
#include "inputs.hpp"
#include "report_page.hpp"

namespace normscope::cli {
namespace {

struct CompareOptions {
  std::string before;
  std::string after;
  models::Stated stated;  ///< of both
  std::string page;
};

double worst_composite(const rewrite::NormComparison& norm) {
  double worst = 0.0;
  for (const rewrite::ReaderComparison& reader : norm.readers)
    worst = std::max({worst, reader.composite, reader.bias});
  return worst;
}

bool differs_somewhere(const rewrite::Comparison& comparison) {
  return std::any_of(comparison.findings.begin(), comparison.findings.end(),
                     [](const rewrite::ComparisonFinding& finding) {
                       return finding.kind != "folded" && finding.kind != "centered";
                     });
}

void print_comparison(const Session& session, const rewrite::Comparison& comparison) {
  std::size_t widest = 4;
  for (const rewrite::NormComparison& norm : comparison.norms) {
    widest = std::max(widest, printable(norm.new_name).size());
  }
  session.say(fmt::format("{:<{}}  {:<10}  {:>11}  {:>11}  {:>11}", "norm", widest, "", "gain change",
                          "bias change", "composite"));
  for (const rewrite::NormComparison& norm : comparison.norms) {
    session.say(fmt::format("{:<{}}  {:<10}  {:>11.2g}  {:>11.2g}  {:>11.2g}", printable(norm.new_name),
                            widest, rewrite::to_string(norm.agreement), norm.gain_change, norm.bias_change,
                            worst_composite(norm)));
  }
  session.say(
      "gain and bias change: relative to those of OLD; composite: the largest relative error of a row of a "
      "reader times the gain, or of its bias; all are 0 for equal models");
  for (const rewrite::ComparisonFinding& finding : comparison.findings)
    session.say("  - " + printable(finding.text));
  for (const std::string& left : comparison.not_compared) session.say("  not compared: " + printable(left));
  switch (comparison.agreement) {
    case rewrite::Agreement::same:
      session.say("same: every tensor has the same values, and no field that has an effect differs");
      break;
    case rewrite::Agreement::equivalent:
      session.say(fmt::format("equivalent: both compute the same, to {:.2g} relative", comparison.tolerance));
      break;
    case rewrite::Agreement::different: session.say("different"); break;
    case rewrite::Agreement::undecided:
      session.say(
          differs_somewhere(comparison)
              ? std::string("undecided: whether what differs changes what is computed is not known")
              : fmt::format("undecided: nothing differs of what could be compared, to {:.2g} relative",
                            comparison.tolerance));
      break;
  }
}

int run_compare(const Session& session, const CompareOptions& options) {
  Inputs inputs;
  const files::Checkpoint& before = inputs.checkpoint(options.before);
  const files::Checkpoint& after = inputs.checkpoint(options.after);
  inputs.keep_apart({session.json, options.page});
  const models::Model& old_model = inputs.model_of(before, options.stated);
  const models::Model& new_model = inputs.model_of(after, options.stated);
  const rewrite::Comparison comparison =
      rewrite::compare(before, old_model, after, new_model, session.progress());
  AtomicGroup outputs;
  if (!options.page.empty()) {
    nlohmann::ordered_json charts = figures::comparison_charts(comparison);
    if (comparison.agreement != rewrite::Agreement::same) {
      for (auto& chart : figures::side_by_side_charts(
               analysis::audit_norms(before, old_model, session.threads, session.progress()),
               analysis::audit_norms(after, new_model, session.threads, session.progress()))) {
        charts.push_back(std::move(chart));
      }
    }
    AtomicFile page(options.page);
    page.write(report::fill(json_text(results::comparison(before, after, comparison), 1), json_text(charts)));
    page.commit();
  }
  if (session.wants_json()) session.write_json(json_text(results::comparison(before, after, comparison), 1));
  outputs.commit();
  print_comparison(session, comparison);
  const bool agrees = comparison.agreement == rewrite::Agreement::same ||
                      comparison.agreement == rewrite::Agreement::equivalent;
  return agrees ? ok : negative;
}

}  // namespace

void add_compare(CLI::App& root, Session& session) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      add_command(root, session, "compare",
                  "Decide whether two checkpoints compute the same function; say norm by norm what differs",
                  [&session, options] { return run_compare(session, *options); });
  command->add_option("OLD", options->before, "Checkpoint to compare with")->required();
  command->add_option("NEW", options->after, "Checkpoint that should compute the same function")->required();
  add_stated(*command, options->stated);
  command
      ->add_option("-o,--output", options->page,
                   "HTML page to write, with figures of how far each norm moved")
      ->type_name("FILE");
  command->remove_option(command->get_option("--threads"));
  add_examples(*command, {"normscope rewrite models/wordlist_gpt -o folded --fold gains",
                          "normscope compare models/wordlist_gpt folded"});
}

}  // namespace normscope::cli
