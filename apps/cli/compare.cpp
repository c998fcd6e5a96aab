#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/error.hpp>
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
  std::string explain;
};

double worst_composite(const rewrite::NormComparison& norm) {
  double worst = 0.0;
  for (const rewrite::ReaderComparison& reader : norm.readers)
    worst = std::max({worst, reader.composite, reader.bias});
  return worst;
}

bool differs_somewhere(const rewrite::Comparison& comparison) {
  return std::any_of(comparison.findings.begin(), comparison.findings.end(),
                     [](const rewrite::ComparisonFinding& finding) { return !finding.keeps_function(); });
}

/// The tokens of a witness up to the position whose logits differ.
std::string context_of(const rewrite::Witness& witness) {
  return fmt::format(
      "{}", fmt::join(witness.tokens.begin(),
                      witness.tokens.begin() + static_cast<std::ptrdiff_t>(witness.position) + 1, " "));
}

std::string verdict_of(const rewrite::Comparison& comparison) {
  switch (comparison.agreement) {
    case rewrite::Agreement::same:
      return "same: every tensor has the same values, and no field that has an effect differs";
    case rewrite::Agreement::equivalent:
      return fmt::format("equivalent: both compute the same, to {:.2g} relative", comparison.tolerance);
    case rewrite::Agreement::quantized:
      return "equivalent up to quantization: both compute the same but for what the block formats of "
             "quantized "
             "matrices explain";
    case rewrite::Agreement::different:
      if (!comparison.witness) return "different: by their descriptions they do not compute the same";
      return fmt::format("different: after the tokens {}, {} {} is {:.6g} in NEW and {:.6g} in OLD",
                         context_of(*comparison.witness),
                         comparison.witness->of_features ? "the hidden feature" : "the logit of token",
                         comparison.witness->logit.token, comparison.witness->logit.after,
                         comparison.witness->logit.before);
    case rewrite::Agreement::undecided:
      return differs_somewhere(comparison)
                 ? "undecided: whether what differs changes what is computed is not known"
                 : fmt::format("undecided: nothing differs of what could be compared, to {:.2g} relative",
                               comparison.tolerance);
  }
  return {};
}

void print_comparison(const Session& session, const rewrite::Comparison& comparison) {
  session.say(printable(verdict_of(comparison)));
  for (const rewrite::ComparisonFinding& finding : comparison.findings)
    session.say("  - " + printable(finding.text));
  for (const std::string& left : comparison.not_compared) session.say("  not compared: " + printable(left));
  if (const auto& witness = comparison.witness) {
    session.say(
        fmt::format("  witness: logits of the weights as they are stored, {:.2g} apart; errors of both "
                    "passes are estimated as "
                    "{:.1g} and {:.1g}, and rounding of the weights explains {:.1g}",
                    std::abs(witness->logit.after - witness->logit.before), witness->old_error,
                    witness->new_error, witness->rounding));
  }
  if (!comparison.no_witness.empty()) session.say("  " + printable(comparison.no_witness));
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
}

const rewrite::NormComparison& norm_to_explain(const rewrite::Comparison& comparison,
                                               const std::string& name) {
  for (const rewrite::NormComparison& norm : comparison.norms) {
    if (norm.new_name == name || norm.old_name == name) return norm;
  }
  throw Error(
      ErrorCode::Argument,
      fmt::format("compare: --explain {}: no norm has that name; expected one of {}", name,
                  comparison.norms.empty() ? std::string("none")
                                           : fmt::format("{} to {}", comparison.norms.front().new_name,
                                                         comparison.norms.back().new_name)));
}

/// All that was compared of one norm.
void print_norm(const Session& session, const rewrite::Comparison& comparison,
                const rewrite::NormComparison& norm) {
  const auto counted_as = [&](double error) {
    return error == 0.0 ? "equal" : error <= comparison.tolerance ? "rounding" : "differs";
  };
  session.say(printable(fmt::format("{} in NEW, {} in OLD: {}", norm.new_name, norm.old_name,
                                    rewrite::to_string(norm.agreement))));
  session.say(fmt::format("  eps {:g} in NEW, {:g} in OLD{}", norm.new_eps, norm.old_eps,
                          norm.eps_known ? "" : ", of which one is assumed"));
  for (const std::string& reason : norm.old_reasons) session.say("  in OLD because " + printable(reason));
  for (const std::string& reason : norm.new_reasons) session.say("  in NEW because " + printable(reason));
  session.say(fmt::format("  gain: change {:.3g} ({}), cosine {:.6g}", norm.gain_change,
                          counted_as(norm.gain_change), norm.gain_cosine));
  session.say(fmt::format("  bias: change {:.3g} ({})", norm.bias_change, counted_as(norm.bias_change)));
  for (const rewrite::ReaderComparison& reader : norm.readers) {
    const double worst = std::max(reader.composite, reader.bias);
    std::string line = fmt::format(
        "  reader {}: stored weights change {:.3g}, with the gain {:.3g}, bias {:.3g} ({})",
        reader.new_weight, reader.raw, reader.composite, reader.bias,
        comparison.is_quantization(reader.new_weight) && worst > comparison.tolerance ? "quantization"
                                                                                      : counted_as(worst));
    if (!reader.taken_from.empty()) line += "; it is " + reader.taken_from + " of OLD";
    session.say(printable(line));
    for (const rewrite::Quantization& found : comparison.quantizations) {
      if (found.new_weight != reader.new_weight) continue;
      session.say(fmt::format("    {}: {} of {} blocks are not explained; the worst is block {} of row {}",
                              found.format, found.wrong_blocks, found.blocks, found.block, found.row));
    }
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
  const rewrite::NormComparison* const explained =
      options.explain.empty() ? nullptr : &norm_to_explain(comparison, options.explain);
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
  if (explained != nullptr) print_norm(session, comparison, *explained);
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
                             .one_of({"rounding", "quantization"}),
                         option("--explain", options->explain)},
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
