#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/selectability/reach.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/verify/verify.hpp>

#include "norm_options.hpp"

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

constexpr std::initializer_list<const char*> array_names = {"rows",
                                                            "offsets",
                                                            "reachable",
                                                            "witnesses",
                                                            "leads",
                                                            "probability_tokens",
                                                            "probability_points",
                                                            "tangent_tokens",
                                                            "tangent_points",
                                                            "far_tokens",
                                                            "far_points"};

/// The command-line form of a vocabulary head: a model, or its arrays.
struct HeadOptions {
  ModelName model;
  std::string unembedding;
  std::string unembedding_bias;
  std::string names;
  NormOptions norm;
};

/// A vocabulary head to be analysed; its norm has no name if it was given as arrays.
struct ReachHead : selectability::VocabularyHead {
  std::string source;                ///< the command-line argument
  std::vector<std::string> names{};  ///< of tokens, as spelled; empty without a known vocabulary
  std::vector<std::string> texts{};  ///< the same as text
  std::vector<std::string> notes{};  ///< assumptions and unknowns of the model's description
  verify::Inputs inputs{};           ///< if requested

  /// `token 17`, or `token 17 "the"`, safe for a terminal.
  [[nodiscard]] std::string shown(std::size_t token) const {
    return printable(selectability::token_name(texts, token));
  }
};

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

void read_from_model(const HeadOptions& options, Inputs& inputs, bool describe, unsigned threads,
                     ReachHead& head) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(options.model.path);
  const std::filesystem::path folder = checkpoint.files().front().parent_path();
  const std::optional<std::filesystem::path> names =
      options.names.empty() ? models::find_token_names(folder)
                            : std::optional<std::filesystem::path>(options.names);
  if (names) inputs.add_file(*names);
  const models::Model& described = inputs.model_of(checkpoint, options.model.stated);
  static_cast<selectability::VocabularyHead&>(head) = selectability::vocabulary_head(checkpoint, described);
  head.notes = described.notes;
  if (describe) {
    head.inputs.arguments.push_back({"model", options.model.path});
    head.inputs.stated = options.model.stated;
    head.inputs.arrays = verify::read_model_head(checkpoint, described).arrays(threads);
  }
  if (names) head.names = models::read_token_names(*names, head.logits.tokens);
}

void read_from_arrays(const HeadOptions& options, Inputs& inputs, bool describe, unsigned threads,
                      ReachHead& head) {
  const files::OpenedArray unembedding = inputs.array(options.unembedding);
  const std::optional<files::OpenedArray> unembedding_bias = inputs.optional_array(options.unembedding_bias);
  const NormInput norm_input = options.norm.open(inputs);
  if (!options.names.empty()) inputs.add_file(options.names);
  const MatrixInput weights = read_matrix(unembedding);
  std::vector<double> bias;
  if (unembedding_bias) bias = unembedding_bias->row();
  const GivenNorm norm = norm_input.of_width(weights.width);
  head.norm = norm;
  if (norm.model) head.norm_name = norm.model->name;
  head.has_bias = !bias.empty();
  if (describe) {
    add_array(head.inputs, "unembedding", options.unembedding, weights, threads);
    if (!bias.empty()) {
      head.inputs.arguments.push_back({"unembedding bias", options.unembedding_bias});
      head.inputs.arrays.push_back(verify::describe_array("unembedding bias", {bias.size()}, bias));
    }
    add_norm(head.inputs, options.norm, head.norm);
  }
  head.logits = selectability::fold(head.norm, weights.view(), bias);
  if (!options.names.empty()) head.names = models::read_token_names(options.names, head.logits.tokens);
}

/// Reads the head and folds the norm into it. With `describe`, records the inputs.
///
/// Errors    as the readers; Unsupported for a model whose head does not read a norm
ReachHead read_head(const HeadOptions& options, Inputs& inputs, bool describe, unsigned threads) {
  if (options.model.path.empty() == options.unembedding.empty()) {
    throw CLI::ValidationError("MODEL or --unembedding", "exactly one of them is needed");
  }
  ReachHead head;
  head.source = options.model.path.empty() ? options.unembedding : options.model.path;
  if (options.model.path.empty()) {
    read_from_arrays(options, inputs, describe, threads, head);
  } else {
    read_from_model(options, inputs, describe, threads, head);
  }
  head.texts = models::token_texts(head.names);
  return head;
}

/// Decides the tokens and computes the extremes, with the state saved in the file of --resume.
void survey(const ReachOptions& options, const selectability::Logits& logits, const Session& session,
            Survey& results) {
  const Progress progress = session.progress();
  selectability::ReachOptions how{.threads = session.threads,
                                  .tolerance = options.tolerance,
                                  .progress = progress,
                                  .work = selectability::budget_unit * options.budget,
                                  .team = session.team};
  const selectability::ReachState state(options.resume, logits, how, options.probability_gap);
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
  std::vector<std::size_t> nearest = results.nearest(tokens_said);
  // The only token has no other to lead.
  std::erase_if(nearest, [&](std::size_t i) { return !std::isfinite(results.tokens[i].upper); });
  if (!nearest.empty()) session.say("smallest margins:");
  for (const std::size_t i : nearest) {
    session.say(fmt::format("  {}: at most {}", head.shown(i), at_most(results.tokens[i].upper, 4)));
  }
  const std::vector<std::size_t> least = results.least_probable(tokens_said);
  if (!least.empty()) session.say("smallest maximum probabilities:");
  for (const std::size_t i : least) {
    session.say(fmt::format("  {}: between {} and {}", head.shown(i),
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

/// Points of some tokens, as NAME_tokens.npy and NAME_points.npy.
class Points {
 public:
  void add(std::size_t token, std::span<const double> point) {
    if (point.empty()) return;
    tokens_.push_back(static_cast<double>(token));
    points_.insert(points_.end(), point.begin(), point.end());
  }
  template <typename Write>
  void write(const Write& write, const char* tokens, const char* points, std::size_t width) && {
    write(tokens, std::move(tokens_));
    write(points, std::move(points_), width);
  }

 private:
  std::vector<double> tokens_{};
  std::vector<double> points_{};
};

/// Writes rows.npy and offsets.npy (the logits A u + a, with means of all tokens subtracted), reachable.npy
/// (tokens), witnesses.npy (a point u of the ball for each) and leads.npy (the lead there). In the same way,
/// writes the tokens and points of probability_ (lower bounds of largest probabilities), tangent_ (upper
/// bounds) and far_ ((u, height) of leads without the ball). Does nothing if the name is empty.
void write_witnesses(Outputs& outputs, const std::string& folder, const selectability::Logits& logits,
                     const Survey& results, double tolerance) {
  if (folder.empty()) return;
  const double stretch = selectability::without_ball(logits, tolerance).stretch;
  Points witnesses;
  Points probabilities;
  Points tangents;
  Points far;
  std::vector<double> leads;
  for (std::size_t token = 0; token < results.tokens.size(); ++token) {
    const selectability::TokenReach& reach = results.tokens[token];
    if (reach.answer == proof::Answer::yes) {
      witnesses.add(token, selectability::witness(logits, token, reach));
      leads.push_back(reach.lower);
    }
    probabilities.add(token, results.probabilities[token].point);
    tangents.add(token, results.probabilities[token].proving_tangent());
    std::vector<double> cone = reach.unbounded_witness;
    if (!cone.empty()) cone.back() *= stretch;
    far.add(token, cone);
  }
  const auto write = [&](const char* name, std::vector<double> values, std::size_t width = 0) {
    write_array(outputs, folder, name, std::move(values), width);
  };
  write("rows", logits.rows, logits.width);
  write("offsets", logits.offsets);
  write("leads", std::move(leads));
  std::move(witnesses).write(write, "reachable", "witnesses", logits.width);
  std::move(probabilities).write(write, "probability_tokens", "probability_points", logits.width);
  std::move(tangents).write(write, "tangent_tokens", "tangent_points", logits.width);
  std::move(far).write(write, "far_tokens", "far_points", logits.width + 1);
}

/// The exit status of --check.
int status_of(const Survey& results) {
  if (!results.with(Answer::no).empty()) return negative;
  return results.with(Answer::undecided).empty() ? ok : undecided;
}

int run_reach(const Session& session, Inputs& inputs, Outputs& outputs, const ReachOptions& options) {
  const ReachHead head = read_head(options.head, inputs, session.wants_json(), session.threads);
  for (const std::size_t token : options.tokens) {
    if (token >= head.logits.tokens) {
      throw Error(ErrorCode::Argument,
                  fmt::format("--sharpen-tokens: {} is not among the {}, expected 0 to {}", token,
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
  const int status = options.check ? status_of(results) : int{ok};
  if (!session.team->is_first()) return status;
  write_witnesses(outputs, options.certificates, head.logits, results, options.tolerance);
  outputs.commit([&] { return document(true); });
  describe(session, head, results);
  return status;
}

}  // namespace

Command reach_command() {
  const auto options = std::make_shared<ReachOptions>();
  HeadOptions& head = options->head;
  std::vector<Argument> norm;
  for (Argument& argument : head.norm.arguments({"--groups"})) {
    norm.push_back(std::move(argument).excludes({"MODEL"}));
  }
  return {.name = "reach",
          .text = "Decide which tokens a model can output, and how likely",
          .inputs = {input("MODEL", head.model.path, "Checkpoint with a language-model head")},
          .outputs = {output("--certificates", options->certificates, Role::folder, npy_files(array_names))
                          .says("the logits, and the points that prove answers and bounds,"),
                      output("--resume", options->resume)},
          .options = joined(
              joined({option("--check", options->check).says("every token is reachable"),
                      option("--probability", options->probability).one_of({"auto", "quick", "full"}),
                      option("--probability-gap", options->probability_gap),
                      option("--sharpen", options->sharpen), option("--sharpen-tokens", options->tokens),
                      option("--budget", options->budget).says("in all").usually("no limit"),
                      option("--tolerance", options->tolerance)
                          .says(": what a token's lead must be proved to be at most, relative to the logits' "
                                "size, if it is unreachable"),
                      option("--names", head.names)},
                     model_options(head.model)),
              joined({option("--unembedding", head.unembedding).excludes({"MODEL"}),
                      option("--unembedding-bias", head.unembedding_bias).needs({"--unembedding"})},
                     std::move(norm))),
          .examples = {"normscope reach models/kjv_gpt",
                       "normscope reach models/kjv_gpt --certificates proofs --json reach.json"},
          .run = with(run_reach, options)};
}

}  // namespace normscope::cli
