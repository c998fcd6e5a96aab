#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/attribution.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/results/words.hpp>
#include <normscope/selectability/vocabulary.hpp>

#include "command.hpp"
#include "report_page.hpp"
#include "text_input.hpp"

namespace normscope::cli {
namespace {

struct AttributeCommand {
  TextInput input;
  std::string target;
  std::string against;
  std::optional<std::size_t> at;
  std::string replacement = "zero";
  std::string components;
  double budget = analysis::AttributeOptions{}.budget / selectability::budget_unit;
  bool proofs = false;
  bool rules = false;
  bool anywhere = false;
  std::string page;
  std::vector<std::string> kept;
  analysis::SubsetOptions subsets{};
};

std::string signed_number(double value) { return fmt::format("{:+.4f}", value); }

/// The names of components, or of the first few.
std::string listed(const analysis::Attribution& result, const std::vector<std::size_t>& components) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, components.size()); ++i) {
    text += (i == 0 ? "" : ", ") + printable(result.components[components[i]].name);
  }
  if (components.size() > most) text += fmt::format(" and {} more", components.size() - most);
  return text.empty() ? "none" : text;
}

void print_components(const Session& session, const analysis::Attribution& result, bool with_rules) {
  std::vector<std::size_t> order(result.components.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(result.components[a].effect.exact) > std::abs(result.components[b].effect.exact);
  });
  std::size_t width = 9;
  for (const analysis::ComponentEffect& component : result.components) {
    width = std::max(width, component.name.size());
  }
  const auto say = [&](const std::string& name, const std::vector<std::string>& cells,
                       const std::vector<std::string>& credits) {
    std::string line = fmt::format("{:<{}}", name, width);
    for (const std::string& cell : cells) line += fmt::format("  {:>9}", cell);
    for (const std::string& cell : credits) line += fmt::format("  {:>10}", cell);
    session.say(line);
  };
  // Where nothing replaces a component, its frozen change is its share with the other sign.
  const bool has_frozen = result.removal != analysis::Removal::zero;
  const auto row = [&](std::string share, std::string frozen, std::vector<std::string> others) {
    if (has_frozen) others.insert(others.begin(), std::move(frozen));
    others.insert(others.begin(), std::move(share));
    return others;
  };
  std::vector<std::string> titles;
  const bool with_ranges = std::any_of(result.components.begin(), result.components.end(),
                                       [](const auto& component) { return component.anywhere.has_value(); });
  if (with_ranges) titles = {"least ever", "most ever"};
  if (with_rules) titles.emplace_back("paths");
  for (std::size_t i = 0; i < analysis::rule_count && with_rules; ++i)
    titles.emplace_back(analysis::rules[i].title);
  say("component", row("share", "frozen", {"price", "exact", "gradient", "+- at most", "rerun"}), titles);
  for (const std::size_t k : order) {
    const analysis::ComponentEffect& x = result.components[k];
    std::vector<std::string> credits;
    if (with_ranges) {
      credits.push_back(x.anywhere ? results::format_at_least(x.anywhere->interval.lower) : "-");
      credits.push_back(x.anywhere ? results::format_at_most(x.anywhere->interval.upper) : "-");
    }
    if (with_rules) credits.push_back(x.paths ? signed_number(*x.paths) : "-");
    for (std::size_t i = 0; i < analysis::rule_count && with_rules; ++i)
      credits.push_back(signed_number(x.credits[i]));
    say(x.name,
        row(signed_number(x.share), signed_number(x.effect.frozen),
            {signed_number(x.effect.price), signed_number(x.effect.exact), signed_number(x.effect.gradient),
             std::isfinite(x.effect.remainder) ? results::format_at_most(x.effect.remainder) : "-",
             x.rerun ? signed_number(*x.rerun) : "-"}),
        credits);
  }
}

void print_bounds(const Session& session, const analysis::Attribution& result) {
  if (result.bounds.empty()) return;
  session.say("what is left of any logit after any N components are removed, over what freezing predicts:");
  for (const analysis::SubsetBound& bound : result.bounds) {
    const bool is_bounded = std::isfinite(bound.most);
    session.say(fmt::format(
        "{:>3}  {} to {}; attained {} ({}) and {} ({})", bound.removed, results::format_at_least(bound.least),
        is_bounded ? results::format_at_most(bound.most) : "any",
        results::format_number(bound.attained_least.value), listed(result, bound.attained_least.removed),
        results::format_number(bound.attained_most.value), listed(result, bound.attained_most.removed)));
  }
}

void print_check(const Session& session, const analysis::Attribution& result) {
  if (!result.check) return;
  const analysis::RunCheck& check = *result.check;
  std::string line = fmt::format("run again with each component as it was: {} differ, the logit by {:.1g}",
                                 check.differing, check.null_patch);
  if (check.freeze) {
    line += fmt::format("; frozen, with random changes: {}, by paths {}", signed_number(check.freeze->by_run),
                        signed_number(check.freeze->by_paths));
  }
  session.say(line);
}

void print_circuit(const Session& session, const analysis::Attribution& result) {
  if (!result.circuit) return;
  const analysis::Circuit& circuit = *result.circuit;
  const double exact = result.value + circuit.effect.exact;
  const double frozen = result.value + circuit.effect.frozen;
  const double gradient = result.value + circuit.effect.gradient;
  session.say(fmt::format(
      "keeping {} only: {} exactly behind the norm, {} frozen, {} by the gradient{}",
      listed(result, circuit.kept), signed_number(exact), signed_number(frozen), signed_number(gradient),
      circuit.rerun ? fmt::format(", {} when run again", signed_number(result.value + *circuit.rerun)) : ""));
  const bool flips_frozen = exact * frozen < 0.0, flips_gradient = exact * gradient < 0.0;
  if (!flips_frozen && !flips_gradient) return;
  session.say(fmt::format("{} the wrong sign", flips_frozen && flips_gradient ? "frozen and gradient have"
                                               : flips_frozen                 ? "frozen has"
                                                                              : "the gradient has"));
}

void print(const Session& session, const analysis::Attribution& result, const std::vector<std::string>& names,
           bool with_rules) {
  const auto name = [&](std::size_t token) { return printable(selectability::token_name(names, token)); };
  session.say(fmt::format("logit of {}{} after position {}, {}: {}", name(result.target),
                          result.against ? " less that of " + name(*result.against) : "", result.at,
                          name(result.tokens[result.at]), signed_number(result.value)));
  session.say(fmt::format(
      "shares of {} and a constant of {} add up to it; their rows miss the stream by {:.1g}",
      counted(result.components.size(), "component"), signed_number(result.constant), result.miss));
  print_components(session, result, with_rules);
  print_bounds(session, result);
  print_check(session, result);
  print_circuit(session, result);
  for (const analysis::NearFold& fold : result.folds) {
    session.say(fmt::format("near a fold: position {} at {}, radius {}", fold.position,
                            printable(result.model->norms[fold.norm].name),
                            results::format_number(fold.radius)));
  }
}

int run_attribute(const Session& session, Inputs& inputs, Outputs& outputs, const AttributeCommand& command) {
  const std::optional<files::OpenedArray> rows = inputs.optional_array(command.components);
  const bool is_word = command.replacement == "zero" || command.replacement == "mean";
  const std::optional<files::OpenedArray> replacements =
      is_word ? std::nullopt : inputs.optional_array(command.replacement);
  const Context context = context_of(command.input, inputs);
  const auto token_of = [&](const std::string& text) {
    return forward::find_token(text, context.names, context.tokenizer ? &*context.tokenizer : nullptr);
  };
  analysis::AttributeOptions options{.target = token_of(command.target),
                                     .at = command.at,
                                     .budget = selectability::budget_unit * command.budget,
                                     .threads = session.threads};
  options.subsets = command.subsets;
  options.kept = command.kept;
  options.anywhere = command.anywhere;
  if (!command.against.empty()) options.against = token_of(command.against);
  options.removal = command.replacement == "zero"   ? analysis::Removal::zero
                    : command.replacement == "mean" ? analysis::Removal::mean
                                                    : analysis::Removal::given;
  std::optional<MatrixInput> components, given;
  if (rows) {
    components = read_matrix(*rows);
    options.components = components->view();
    options.tolerance = analysis::sum_tolerance(rows->dtype());
  }
  if (replacements) {
    given = read_matrix(*replacements);
    options.replacements = given->view();
  }
  const analysis::Attribution result =
      analysis::attribute(context.checkpoint, context.model, context.tokens, options, session.progress());
  const auto document = results::attribution(
      {.arguments = {{"model", command.input.model.path}}, .stated = command.input.model.stated}, result,
      context.names, command.proofs);
  outputs.write_text(command.page, [&] {
    return report::fill(json_text(document, 1),
                        json_text(figures::attribution_charts(result, context.names)));
  });
  outputs.commit([&] { return json_text(document, 1); });
  print(session, result, context.names, command.rules);
  say_notes(session, context.model.notes);
  return ok;
}

}  // namespace

Command attribute_command() {
  const auto options = std::make_shared<AttributeCommand>();
  return {.name = "attribute",
          .text = "Split a logit by head and layer, exact through the norm",
          .inputs = text_inputs(options->input),
          .outputs = {output("-o,--output", options->page).says("an HTML page with figures")},
          .options =
              joined({option("--target", options->target).required(), option("--against", options->against),
                      option("--at", options->at), option("--replace-with", options->replacement),
                      option("--components", options->components), option("--keep", options->kept),
                      option("--most-removed", options->subsets.most_removed),
                      option("--budget", options->budget)
                          .says("for running the model again without each component")
                          .usually("100"),
                      option("--rules", options->rules), option("--all-contexts", options->anywhere),
                      option("--proofs", options->proofs)},
                     text_options(options->input)),
          .footer =
              "A component is an addend of the residual stream: an embedding, a head\n"
              "(LAYER.HEAD), an MLP or a bias. The columns, in logits, largest exact change\n"
              "first:\n"
              "  share       its part of the logit, exact as long as nothing is removed\n"
              "  frozen      change if it is replaced and the final norm's divisor is kept; if\n"
              "              nothing replaces it, this is -share and not printed\n"
              "  price       what that leaves out: the norm then divides by another number\n"
              "  exact       -share (or frozen) + price: the change behind the final norm\n"
              "              (direct effect)\n"
              "  gradient    estimate of it by the gradient (attribution patching)\n"
              "  +- at most  proved bound of the estimate's error\n"
              "  rerun       change if it is removed at every position and the rest of the\n"
              "              model runs again (total effect)\n"
              "  least ever, most ever  with --all-contexts: proved bounds of its share\n"
              "  paths       with --rules: rerun with attention, MLPs and the divisors of norms\n"
              "              kept, the sum over paths through heads\n"
              "  grad*input  with --rules: gradient times the component itself\n"
              "  half rule   with --rules: relevance propagation that gives the norm's divisor\n"
              "              one half, by the components' parts of the squared length",
          .examples = {"normscope attribute models/wordlist_gpt understandin --target g",
                       "normscope attribute models/wordlist_gpt understandin --target g --against e"},
          .run = with(run_attribute, options)};
}

}  // namespace normscope::cli
