#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/selectability/reach.hpp>

#include "command.hpp"
#include "reach_certificates.hpp"
#include "reach_head.hpp"
#include "reach_state.hpp"

namespace normscope::cli {
namespace {

using proof::Answer;
using selectability::Probabilities;
using selectability::Survey;
using selectability::TokenReach;

const std::map<std::string, Probabilities> probabilities = {
    {"quick", Probabilities::quick}, {"auto", Probabilities::extremes}, {"full", Probabilities::full}};
constexpr std::size_t tokens_said = 5;
constexpr std::chrono::seconds reach_saved_every{30};

struct ReachOptions {
  HeadOptions head;
  std::string resume;
  std::string certificates;
  std::string probability = "auto";
  std::vector<std::size_t> tokens;
  double tolerance = 1e-12;
  std::size_t sharpen = 20;
  double probability_gap = 1e-3;
  double budget = std::numeric_limits<double>::infinity();
  bool check = false;
};

/// Decides the tokens and computes the extremes, with the state saved in the file of --resume.
void survey(const ReachOptions& options, const selectability::Logits& logits, const Session& session,
            Survey& results) {
  const Progress progress = session.progress();
  selectability::ReachOptions how{.threads = session.threads,
                                  .tolerance = options.tolerance,
                                  .progress = progress,
                                  .work = selectability::budget_unit * options.budget,
                                  .team = session.team};
  const ReachState state(options.resume, logits, how, options.probability_gap);
  if (state.exists()) results = state.load();
  auto saved = std::chrono::steady_clock::now();
  how.progress = Progress([&](std::string_view what, std::size_t done, std::size_t total) {
    progress(what, done, total);
    if (what != "screen" && std::chrono::steady_clock::now() - saved >= reach_saved_every) {
      state.save(results);
      saved = std::chrono::steady_clock::now();
    }
    return true;
  });
  try {
    selectability::decide(logits, results.tokens, how);
    selectability::finish_survey(logits, results,
                                 {.nearest = options.sharpen,
                                  .probabilities = probabilities.at(options.probability),
                                  .asked = options.tokens,
                                  .probability_gap = options.probability_gap},
                                 how);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled && !results.tokens.empty()) state.save(results);
    throw;
  }
  state.save(results);
}

void describe(const Session& session, const ReachHead& head, const Survey& results) {
  std::vector<std::size_t> unreachable = results.with(Answer::no);
  session.say(fmt::format("{} of width {} after {} ({})", counted(head.logits.tokens, "token"),
                          head.logits.width, head.norm_name.empty() ? "a norm" : printable(head.norm_name),
                          to_string(head.norm.kind)));
  session.say(
      fmt::format("{} reachable, {} unreachable, {} undecided; {} unreachable even without the norm's bound",
                  results.with(Answer::yes).size(), unreachable.size(),
                  results.with(Answer::undecided).size(), results.unargmaxable()));
  session.say(
      "Reachable: at some input of the final norm the token has the largest logit; no text need lead there. "
      "Margin: how far its logit exceeds every other there, in logits.");
  const std::vector<std::vector<std::size_t>> ties = head.logits.ties();
  for (std::size_t k = 0; k < std::min(tokens_said, ties.size()); ++k) {
    session.say(
        fmt::format("  tied: {} and {} have equal weights{}, so that their logits are always equal",
                    head.shown(ties[k][0]), head.shown(ties[k][1]),
                    ties[k].size() > 2 ? fmt::format(", as have {} others", ties[k].size() - 2) : ""));
  }
  if (ties.size() > tokens_said)
    session.say(fmt::format("  ... and {} more groups", ties.size() - tokens_said));
  unreachable = selectability::without_ties(std::move(unreachable), ties);
  for (std::size_t k = 0; k < std::min(tokens_said, unreachable.size()); ++k) {
    const std::size_t i = unreachable[k];
    // Without weights, the constraint that limits the lead is the token with the next highest logit.
    const TokenReach& token = results.tokens[i];
    const std::size_t others = std::max<std::size_t>(token.weights.size(), 1);
    session.say(fmt::format(
        "  unreachable: {}; at every input one of {} has a larger logit; probability at most {}",
        head.shown(i), counted(others, "other token"), at_most(results.probabilities[i].upper, 3)));
  }
  if (unreachable.size() > tokens_said)
    session.say(fmt::format("  ... and {} more", unreachable.size() - tokens_said));
  std::vector<std::size_t> inside = results.with(Answer::undecided);
  inside.erase(std::remove_if(inside.begin(), inside.end(),
                              [&](std::size_t i) { return !results.tokens[i].only_inside; }),
               inside.end());
  for (std::size_t k = 0; k < std::min(tokens_said, inside.size()); ++k) {
    session.say(fmt::format("  undecided: {} is known to lead only inside the ball, which eps = 0 excludes",
                            head.shown(inside[k])));
  }
  for (const std::size_t i : results.nearest(tokens_said)) {
    if (!std::isfinite(results.tokens[i].upper)) continue;  // the only token: there is no other to lead
    session.say(fmt::format("  smallest margins: {}, at most {}", head.shown(i),
                            at_most(results.tokens[i].upper, 4)));
  }
  for (const std::size_t i : results.least_probable(tokens_said)) {
    session.say(fmt::format("  smallest maximum probability: {}, between {} and {}", head.shown(i),
                            at_least(results.probabilities[i].lower, 6),
                            at_most(results.probabilities[i].upper, 6)));
  }
  if (head.soft_cap > 0.0) {
    session.say(
        fmt::format("Margins are of logits before the soft cap of {:g}, probabilities of logits after it.",
                    head.soft_cap));
  }
  const Survey::LeftOut& left = results.left_out;
  if (left.tokens > 0) session.say(fmt::format("left out: {} not decided", counted(left.tokens, "token")));
  if (left.leads > 0) {
    session.say(fmt::format("left out: {} that may be nearer to unreachable than those listed",
                            counted(left.leads, "token")));
  }
  if (left.probabilities > 0) {
    session.say(fmt::format("left out: the largest probabilities of {}, bounded by their margins alone",
                            counted(left.probabilities, "token")));
  }
  say_notes(session, head.notes);
}

int run_reach(const Session& session, const ReachOptions& options) {
  expect_writable({options.resume});
  expect_folders({options.certificates});
  std::vector<std::string> outputs = witness_files(options.certificates);
  outputs.insert(outputs.end(), {options.resume, session.json});
  const ReachHead head = read_head(options.head, outputs, session.wants_json(), session.threads);
  for (const std::size_t token : options.tokens) {
    if (token >= head.logits.tokens) {
      throw Error(ErrorCode::Argument,
                  fmt::format("--tokens: {} is not among the {}, expected 0 to {}", token,
                              counted(head.logits.tokens, "token"), head.logits.tokens - 1));
    }
  }
  Survey results;
  const auto document = [&](bool complete) {
    return json_text(results::reach(head, results,
                                    {.source = head.source,
                                     .names = head.names,
                                     .notes = head.notes,
                                     .inputs = head.inputs,
                                     .tolerance = options.tolerance,
                                     .folder = options.certificates,
                                     .complete = complete}));
  };
  try {
    survey(options, head.logits, session, results);
    if (head.soft_cap > 0.0) selectability::cap_probabilities(head, results, session.threads);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Cancelled && !results.tokens.empty()) {
      if (session.wants_json() && session.team->is_first()) {
        selectability::bound_by_leads(results);
        if (head.soft_cap > 0.0) selectability::cap_probabilities(head, results, session.threads);
        session.write_json(document(false));
      }
      // An error ends all processes; none may have one before the first has written.
      (void)session.team->any(true);
    }
    throw;
  }
  const int status = options.check && results.with(Answer::yes).size() < head.logits.tokens ? negative : ok;
  if (!session.team->is_first()) return status;
  AtomicGroup together;
  write_witnesses(options.certificates, head.logits, results, options.tolerance);
  session.write_json(document(true));
  together.commit();
  describe(session, head, results);
  return status;
}

}  // namespace

void add_reach(CLI::App& root, Session& session) {
  const auto options = std::make_shared<ReachOptions>();
  CLI::App* command =
      add_command(root, session, "reach",
                  "Decide which tokens a model can output after its final norm, and bound their probability",
                  [&session, options] { return run_reach(session, *options); });
  HeadOptions& head = options->head;
  CLI::Option* model = command->add_option("MODEL", head.model.path, "Checkpoint with a language-model head");
  add_model_options(*command, head.model);
  CLI::Option* unembedding = command
                                 ->add_option("--unembedding", head.unembedding,
                                              "Instead of MODEL: unembedding matrix, tokens x width")
                                 ->type_name("ARRAY")
                                 ->excludes(model);
  command
      ->add_option("--unembedding-bias", head.unembedding_bias,
                   "Bias of the unembedding, one number per token")
      ->type_name("ARRAY")
      ->needs(unembedding);
  head.norm.declare(*command);
  for (const char* name : {"--norm", "--gain", "--gain-offset", "--bias", "--eps", "--alpha", "--shift"}) {
    command->get_option(name)->excludes(model);
  }
  command->remove_option(command->get_option("--groups"));
  command
      ->add_option("--names", head.names,
                   "Token names: tokenizer.json, vocab.json, vocab.txt or llama2.c's .bin")
      ->type_name("FILE");
  command
      ->add_option("--probability", options->probability,
                   "Bound the largest probabilities by margins (quick), by optimization (full) or by both "
                   "(auto, the default)")
      ->check(CLI::IsMember({"auto", "quick", "full"}));
  command
      ->add_option(
          "--probability-gap", options->probability_gap,
          "Gap between the bounds of a log-probability at which their optimization stops (default 1e-3)")
      ->type_name("G")
      ->check(numbers(0.0, 1e6));
  command
      ->add_option(
          "--sharpen", options->sharpen,
          "Optimize margin and probability of the N tokens that are closest to unreachable (default 20)")
      ->type_name("N")
      ->check(counts(0, largest_count));
  command
      ->add_option(
          "--budget", options->budget,
          "Work limit in billions of multiplications, after which remaining work is skipped and listed "
          "(default: no limit)")
      ->type_name("N")
      ->check(numbers(0.0, 1e9));
  command
      ->add_option("--tokens", options->tokens, "Optimize the largest probability of these tokens (ids) too")
      ->type_name("I1,I2,...")
      ->delimiter(',');
  command
      ->add_option("--tolerance", options->tolerance,
                   "Margin, relative to the logits' size, below which logits count as tied (default 1e-12)")
      ->type_name("T")
      ->check(numbers(0.0, 1.0));
  command
      ->add_option("--resume", options->resume,
                   "Save decided tokens in FILE and continue from it; Ctrl-C saves them too")
      ->type_name("FILE");
  command
      ->add_option(
          "--certificates", options->certificates,
          "Write the logits, and the points that prove answers and bounds, into FOLDER as .npy files")
      ->type_name("FOLDER");
  command->add_flag("--check", options->check, "Exit with status 1 unless every token is reachable");
  add_examples(*command,
               {"normscope reach models/wordlist_gpt",
                "normscope reach models/wordlist_gpt --check --certificates proofs --json reach.json"});
}

}  // namespace normscope::cli
