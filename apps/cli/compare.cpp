#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/rewrite/compare.hpp>

#include "command.hpp"
#include "report_page.hpp"

namespace normscope::cli {
namespace {

struct CompareOptions {
  std::string before;
  std::string after;
  models::Stated stated;  ///< of both
  std::string page;
  bool check = false;
  std::string tolerance = "rounding";
};

double worst_composite(const rewrite::NormComparison& norm) {
  double worst = 0.0;
  for (const rewrite::ReaderComparison& reader : norm.readers)
    worst = std::max({worst, reader.composite, reader.bias});
  return worst;
}

bool differs_somewhere(const rewrite::Comparison& comparison) {
  return std::any_of(
      comparison.findings.begin(), comparison.findings.end(), [](const rewrite::ComparisonFinding& finding) {
        return finding.kind != "folded" && finding.kind != "centered" && finding.kind != "rotated" &&
               finding.kind != "shifted_logits" && finding.kind != "quantized";
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
    case rewrite::Agreement::quantized:
      session.say(
          "equivalent up to quantization: both compute the same but for what the block formats of quantized "
          "matrices explain");
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

int run_compare(const Session& session, Inputs& inputs, Outputs& outputs, const CompareOptions& options) {
  const files::Checkpoint& before = inputs.checkpoint(options.before);
  const files::Checkpoint& after = inputs.checkpoint(options.after);
  const models::Model& old_model = inputs.model_of(before, options.stated);
  const models::Model& new_model = inputs.model_of(after, options.stated);
  const rewrite::Comparison comparison = rewrite::compare(
      before, old_model, after, new_model, session.progress(),
      options.tolerance == "quantization" ? rewrite::Tolerance::quantization : rewrite::Tolerance::rounding);
  outputs.write_text(options.page, [&] {
    nlohmann::ordered_json charts = figures::comparison_charts(comparison);
    if (comparison.agreement != rewrite::Agreement::same) {
      for (auto& chart : figures::side_by_side_charts(
               analysis::audit_norms(before, old_model, session.threads, session.progress()),
               analysis::audit_norms(after, new_model, session.threads, session.progress()))) {
        charts.push_back(std::move(chart));
      }
    }
    return report::fill(json_text(results::comparison(before, after, comparison), 1), json_text(charts));
  });
  outputs.commit([&] { return json_text(results::comparison(before, after, comparison), 1); });
  print_comparison(session, comparison);
  if (!options.check) return ok;
  switch (comparison.agreement) {
    case rewrite::Agreement::same:
    case rewrite::Agreement::equivalent:
    case rewrite::Agreement::quantized: return ok;
    case rewrite::Agreement::different: return negative;
    case rewrite::Agreement::undecided: return undecided;
  }
  return ok;
}

}  // namespace

Command compare_command() {
  const auto options = std::make_shared<CompareOptions>();
  return {
      .name = "compare",
      .text = "Decide whether two checkpoints compute the same function",
      .inputs = {input("OLD", options->before, "Checkpoint to compare with").required(),
                 input("NEW", options->after, "Checkpoint that should compute the same function").required()},
      .outputs =
          {output("-o,--output", options->page).says("an HTML page with figures of how far each norm moved")},
      .options = joined({option("--check", options->check).says("they compute the same function"),
                         option("--tolerance", options->tolerance)
                             .says(": what rounding explains, or quantization, what the block formats of "
                                   "quantized matrices explain too")
                             .usually("rounding")
                             .one_of({"rounding", "quantization"})},
                        stated_options(options->stated)),
      .without = {"--threads"},
      .footer =
          "The columns, all 0 for equal models:\n"
          "  gain change  relative to the gain of OLD\n"
          "  bias change  relative to the bias of OLD\n"
          "  composite    largest relative error of a row of a reader times the gain,\n"
          "               or of its bias",
      .examples = {"normscope rewrite models/kjv_gpt -o folded --fold gains",
                   "normscope compare models/kjv_gpt folded --check"},
      .run = with(run_compare, options)};
}

}  // namespace normscope::cli
