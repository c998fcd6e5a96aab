#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/trace.hpp>
#include <normscope/core/error.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/results/words.hpp>
#include <normscope/selectability/vocabulary.hpp>

#include "command.hpp"
#include "report_page.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

struct TraceCommand {
  ModelName model;
  std::optional<std::string> text;
  std::vector<std::size_t> tokens;
  std::string names;
  std::string activation;
  std::string page;
  std::string activations;
  double budget = analysis::TraceOptions{}.budget / selectability::budget_unit;
  analysis::TraceOptions trace{};
};

/// The tokens of the text, and their names.
struct Context {
  std::vector<std::size_t> tokens{};
  std::vector<std::string> names{};
};

Context context_of(const TraceCommand& command, const std::optional<fs::path>& names,
                   std::size_t vocabulary) {
  Context context{.tokens = command.tokens};
  if (!command.text) {
    if (names) context.names = models::read_token_names(*names, vocabulary);
    return context;
  }
  if (command.text->empty())
    throw Error(ErrorCode::Argument, "trace: the text is empty, expected at least one character");
  if (!names) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: has no tokenizer beside it; give one with --names FILE, or --tokens",
                            command.model.path));
  }
  const forward::Tokenizer tokenizer(*names, vocabulary);
  context.tokens = tokenizer.encode(*command.text);
  context.names = tokenizer.names();
  return context;
}

void state_activation(const std::string& name, models::Model& model) {
  if (name.empty() || !model.decoder) return;
  if (model.decoder->activation) {
    throw Error(ErrorCode::Argument, "trace: --activation: " + model.title + " states its activation itself");
  }
  model.decoder->activation = name == "gelu" ? models::Activation::gelu : models::Activation::gelu_tanh;
}

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
  if (command.text.has_value() != command.tokens.empty()) {
    throw CLI::ValidationError("trace", "expected either TEXT or --tokens");
  }
  const files::Checkpoint& checkpoint = inputs.checkpoint(command.model.path);
  const std::optional<fs::path> names =
      command.names.empty() ? models::find_token_names(checkpoint.files().front().parent_path())
                            : std::optional<fs::path>(command.names);
  if (names) inputs.add_file(*names);
  models::Model model = inputs.model_of(checkpoint, command.model.stated);
  state_activation(command.activation, model);
  const std::size_t vocabulary = forward::Decoder(checkpoint, model).vocabulary();
  const Context context = context_of(command, names, vocabulary);
  analysis::TraceOptions options = command.trace;
  options.budget = selectability::budget_unit * command.budget;
  options.threads = session.threads;
  const analysis::TokenTrace trace =
      analysis::trace(checkpoint, model, context.tokens, options, session.progress());
  const auto document = results::token_trace(checkpoint, trace, context.names);
  outputs.write_text(command.page, [&] {
    return report::fill(json_text(document, 1), json_text(figures::token_trace_charts(trace, context.names)));
  });
  outputs.write_text(command.activations, [&] {
    return json_text(
        results::activations(command.model.path, analysis::observed_norms(trace), {}, &trace.within), 1);
  });
  outputs.commit([&] { return json_text(document, 1); });
  print_norms(session, trace);
  print_heads(session, trace);
  print_tokens(session, trace, context.names);
  say_notes(session, model.notes);
  return ok;
}

}  // namespace

Command trace_command() {
  const auto options = std::make_shared<TraceCommand>();
  return {.name = "trace",
          .text = "Run a text through a decoder; show what each norm does",
          .inputs = {input("MODEL", options->model.path, "Checkpoint to run, a decoder").required(),
                     input("TEXT", options->text, "Text, for models with a tokenizer beside them")},
          .outputs = {output("-o,--output", options->page).says("an HTML page with figures"),
                      output("--activations", options->activations)},
          .options = joined(
              {option("--tokens", options->tokens),
               option("--names", options->names).says("; those of byte-level BPE encode TEXT"),
               option("--activation", options->activation)
                   .says("of the MLP, if the file does not state it")
                   .one_of({"gelu", "gelu_new"}),
               option("--axes", options->trace.axes)
                   .says(", with the tokens' coordinates along them")
                   .usually("8")
                   .within(counts(1, 256)),
               option("--likeliest", options->trace.likeliest),
               option("--budget", options->budget).says("for the keys and, again, for reach").usually("100")},
              model_options(options->model)),
          .footer =
              "The columns:\n"
              "  divides by      smallest and largest number that the norm divides a token by\n"
              "  projects away   largest share of a token along all-ones, which centring erases\n"
              "  radius          smallest distance from the centre, 1 on the ellipsoid\n"
              "  farthest        largest coordinate of a token along the norm's longest axis",
          .examples = {"normscope trace models/wordlist_gpt understanding",
                       "normscope trace models/wordlist_gpt --tokens 0,22,15,5 -o trace.html"},
          .run = with(run_trace, options)};
}

}  // namespace normscope::cli
