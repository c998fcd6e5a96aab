#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/trace.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/results/words.hpp>
#include <normscope/selectability/vocabulary.hpp>

#include "command.hpp"
#include "report_page.hpp"
#include "text_input.hpp"

namespace normscope::cli {
namespace {

struct TraceCommand {
  TextInput input;
  std::string page;
  std::string activations;
  double budget = analysis::TraceOptions{}.budget / selectability::budget_unit;
  analysis::TraceOptions trace{};
};

std::string percentage(double share) { return results::format_number(100.0 * share) + " %"; }

std::string likely(const std::vector<std::string>& names, const forward::Continuation& next) {
  return fmt::format("{} {}", printable(selectability::token_name(names, next.token)),
                     percentage(next.probability));
}

void print_norms(const Session& session, const analysis::TokenTrace& trace) {
  std::size_t width = 4;
  for (const analysis::TracedNorm& norm : trace.norms) {
    width = std::max(width, printable(trace.model->norms[norm.norm].name).size());
  }
  session.say(fmt::format("{:<{}}  {:>20}  {:>12}  {:>9}  {}", "norm", width, "divides by", "projects away",
                          "radius", "farthest along its longest axis"));
  for (const analysis::TracedNorm& norm : trace.norms) {
    const auto range = std::minmax_element(
        norm.tokens.begin(), norm.tokens.end(),
        [](const analysis::TokenAtNorm& a, const analysis::TokenAtNorm& b) { return a.sigma < b.sigma; });
    double removed = 0.0;
    double radius = norm.tokens.front().radius;
    double along = 0.0;
    for (const analysis::TokenAtNorm& token : norm.tokens) {
      removed = std::max(removed, token.ones_share);
      radius = std::min(radius, token.radius);
      if (!token.place.empty() && std::abs(token.place[0]) > std::abs(along)) along = token.place[0];
    }
    const bool centers = norm.observer.spec().centers();
    session.say(fmt::format("{:<{}}  {:>20}  {:>13}  {:>9.6f}  {:+.3f}",
                            printable(trace.model->norms[norm.norm].name), width,
                            fmt::format("{} to {}", results::format_number(range.first->sigma),
                                        results::format_number(range.second->sigma)),
                            centers ? "<= " + percentage(removed) : "-", radius, along));
  }
}

void print_heads(const Session& session, const analysis::TokenTrace& trace) {
  std::size_t keys = 0;
  std::size_t selectable = 0;
  std::size_t refused = 0;
  for (const analysis::ContextKeys& head : trace.within.heads) {
    keys += head.first_context.size();
    selectable += static_cast<std::size_t>(std::count(head.first_context.begin(), head.first_context.end(),
                                                      selectability::Selectability::selectable));
    refused += head.refused.empty() ? 0 : 1;
  }
  session.say(fmt::format("keys: {} of {} in {} can be selected by some query{}", selectable, keys,
                          counted(trace.within.heads.size(), "head"),
                          refused == 0 ? "" : "; " + counted(refused, "head") + " not known"));
}

/// How many of the likely tokens are the likeliest at some input of the final norm.
void say_reach(const Session& session, const analysis::TokenTrace& trace) {
  if (!trace.within.next) {
    session.say("reach: not known: " + printable(trace.within.next_refused));
    return;
  }
  const auto& tokens = trace.within.next->tokens;
  const auto with = [&](proof::Answer answer) {
    return std::count_if(tokens.begin(), tokens.end(),
                         [&](const analysis::NextToken& token) { return token.answer == answer; });
  };
  session.say(fmt::format(
      "reach: {} of {} likely tokens have the largest logit at some input of the final norm, {} at none, {} "
      "undecided",
      with(proof::Answer::yes), tokens.size(), with(proof::Answer::no), with(proof::Answer::undecided)));
}

void print_tokens(const Session& session, const analysis::TokenTrace& trace,
                  const std::vector<std::string>& names) {
  for (std::size_t t = 0; t < trace.tokens.size(); ++t) {
    const forward::Prediction& prediction = trace.predictions[t];
    std::string line =
        fmt::format("{:>4}  {:<24} next:", t, printable(selectability::token_name(names, trace.tokens[t])));
    for (std::size_t k = 0; k < std::min<std::size_t>(3, prediction.likeliest.size()); ++k) {
      line += (k == 0 ? " " : ", ") + likely(names, prediction.likeliest[k]);
    }
    if (prediction.next) {
      line += fmt::format("; what follows: {}, rank {}", percentage(prediction.next->probability),
                          prediction.rank + 1);
    }
    session.say(line);
  }
  say_reach(session, trace);
}

int run_trace(const Session& session, Inputs& inputs, Outputs& outputs, const TraceCommand& command) {
  const Context context = context_of(command.input, inputs);
  analysis::TraceOptions options = command.trace;
  options.budget = selectability::budget_unit * command.budget;
  options.threads = session.threads;
  const analysis::TokenTrace trace =
      analysis::trace(context.checkpoint, context.model, context.tokens, options, session.progress());
  const auto document = results::token_trace(context.checkpoint, trace, context.names);
  outputs.write_text(command.page, [&] {
    return report::fill(json_text(document, 1), json_text(figures::token_trace_charts(trace, context.names)));
  });
  outputs.write_text(command.activations, [&] {
    return json_text(
        results::activations(command.input.model.path, analysis::observed_norms(trace), {}, &trace.within),
        1);
  });
  outputs.commit([&] { return json_text(document, 1); });
  print_norms(session, trace);
  print_heads(session, trace);
  print_tokens(session, trace, context.names);
  say_notes(session, context.model.notes);
  return ok;
}

}  // namespace

Command trace_command() {
  const auto options = std::make_shared<TraceCommand>();
  return {
      .name = "trace",
      .text = "Run a text through a decoder; show what each norm does",
      .inputs = text_inputs(options->input),
      .outputs = {output("-o,--output", options->page).says("an HTML page with figures"),
                  output("--activations", options->activations)},
      .options = joined(
          {option("--axes", options->trace.axes)
               .says(", with the tokens' coordinates along them")
               .usually("8")
               .within(counts(1, 256)),
           option("--likeliest", options->trace.likeliest), option("--attention", options->trace.attention),
           option("--budget", options->budget).says("for the keys and, again, for reach").usually("100")},
          text_options(options->input)),
      .footer =
          "The columns:\n"
          "  divides by      smallest and largest number that the norm divides a token by\n"
          "  projects away   largest share of a token along all-ones, which centring erases\n"
          "  radius          smallest distance from the centre, 1 on the ellipsoid\n"
          "  farthest        largest coordinate of a token along the norm's longest axis",
      .examples = {"normscope trace models/kjv_gpt \"In the beginning\"",
                   "normscope trace models/kjv_gpt --tokens 10,73,110 -o trace.html"},
      .run = with(run_trace, options)};
}

}  // namespace normscope::cli
