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
#include <normscope/core/file.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/results/words.hpp>
#include <normscope/selectability/vocabulary.hpp>

#include "command.hpp"
#include "inputs.hpp"
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

template <typename Text>
void write_if_named(const std::string& path, const Text& text) {
  if (path.empty()) return;
  AtomicFile file(path);
  file.write(text());
  file.commit();
}

int run_trace(const Session& session, const TraceCommand& command) {
  Inputs inputs;
  const files::Checkpoint& checkpoint = inputs.checkpoint(command.model.path);
  const std::optional<fs::path> names =
      command.names.empty() ? models::find_token_names(checkpoint.files().front().parent_path())
                            : std::optional<fs::path>(command.names);
  if (names) inputs.add_file(*names);
  inputs.keep_apart({session.json, command.page, command.activations});
  expect_writable({command.page, command.activations});
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
  AtomicGroup outputs;
  write_if_named(command.page, [&] {
    return report::fill(json_text(document, 1), json_text(figures::token_trace_charts(trace, context.names)));
  });
  write_if_named(command.activations, [&] {
    return json_text(
        results::activations(command.model.path, analysis::observed_norms(trace), {}, &trace.within), 1);
  });
  if (session.wants_json()) session.write_json(json_text(document, 1));
  outputs.commit();
  print_norms(session, trace);
  print_heads(session, trace);
  print_tokens(session, trace, context.names);
  say_notes(session, model.notes);
  return ok;
}

}  // namespace

void add_trace(CLI::App& root, Session& session) {
  const auto options = std::make_shared<TraceCommand>();
  CLI::App* command = add_command(root, session, "trace",
                                  "Run a text through a decoder and show what each norm does with each token",
                                  [&session, options] {
                                    if (options->text.has_value() != options->tokens.empty()) {
                                      throw CLI::ValidationError("trace", "expected either TEXT or --tokens");
                                    }
                                    return run_trace(session, *options);
                                  });
  command->add_option("MODEL", options->model.path, "Checkpoint to run, a decoder")->required();
  command->add_option("TEXT", options->text, "Text, for models with a tokenizer beside them");
  add_model_options(*command, options->model);
  command->add_option("--tokens", options->tokens, "Tokens (ids) in place of a text")
      ->type_name("I1,I2,...")
      ->delimiter(',');
  command
      ->add_option("--names", options->names,
                   "Tokenizer: tokenizer.json or vocab.json of byte-level BPE, or llama2.c's .bin")
      ->type_name("FILE");
  command
      ->add_option("--activation", options->activation,
                   "Activation of the MLP, if the file does not state it")
      ->check(CLI::IsMember({"gelu", "gelu_new"}));
  command
      ->add_option("--axes", options->trace.axes,
                   "Longest axes along which coordinates are written (default 8)")
      ->type_name("N")
      ->check(counts(1, 256));
  command
      ->add_option("--likeliest", options->trace.likeliest,
                   "Next tokens listed for each position (default 10)")
      ->type_name("N")
      ->check(counts(1, 1000));
  command
      ->add_option(
          "--budget", options->budget,
          "Work limit in billions of multiplications for the keys and, again, for reach; what remains "
          "is skipped (default 100)")
      ->type_name("N")
      ->check(numbers(0.0, 1e9));
  command->add_option("-o,--output", options->page, "Write an HTML page with figures")->type_name("FILE");
  command
      ->add_option("--activations", options->activations,
                   "Write statistics of the norms' inputs, as the Python package's watch does, as JSON")
      ->type_name("FILE");
  add_examples(*command, {"normscope trace models/wordlist_gpt understanding",
                          "normscope trace models/wordlist_gpt --tokens 0,22,15,5 -o trace.html"});
}

}  // namespace normscope::cli
