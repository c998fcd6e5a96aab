#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <normscope/core/rounding.hpp>
#include <normscope/files/array.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/signature/extract.hpp>
#include <normscope/signature/verify.hpp>

#include "array_folder.hpp"
#include "signature.hpp"

namespace normscope::cli {
namespace {

using signature::Reason;
using signature::RowResult;
using signature::Verdict;

constexpr std::size_t rows_said = 5;

struct SignatureVerifyOptions {
  ModelName model;
  OutputsOptions outputs;
  std::string certificates;
  double least_mean_square = 0.0;
  bool check = false;
};

std::string reason_in_words(const RowResult& row) {
  switch (row.reason) {
    case Reason::on_surface: return "on the ellipse";
    case Reason::off_subspace: return "no hidden state gives these logits";
    case Reason::outside: return "only a longer hidden state than the norm makes gives these logits";
    case Reason::inside:
      return fmt::format("inside the ellipse: the norm's input would have mean square {:.3g}",
                         row.mean_square);
    case Reason::beyond_noise: return "further away than noise usually is, not further than it may be";
    case Reason::few_values:
      return fmt::format("{} values do not determine the hidden state; nothing speaks against it",
                         row.values);
    case Reason::filled:
      return "outputs fill this ellipsoid, so that only points outside tell; this one is inside";
    case Reason::capped:
      return "log-probabilities hide the number without which the soft cap cannot be undone";
  }
  return {};
}

void say_row(const Session& session, std::size_t index, const RowResult& row) {
  session.say(
      fmt::format("  row {}: {}{}; {}; {:.3g} from the subspace ({:.3g} units of noise), |u| - 1 = "
                  "{:.3g} ({:.3g} units)",
                  index, to_string(row.verdict), row.proved ? ", proved" : "", reason_in_words(row), row.off,
                  row.off_units, row.length - 1.0, row.length_units));
}

void describe_verification(const Session& session, const signature::Verification& result) {
  session.say(fmt::format("{}{}: {} consistent, {} not this model, {} undecided", to_string(result.verdict),
                          result.proved ? " (proved)" : "", result.with(Verdict::consistent),
                          result.with(Verdict::not_this_model), result.with(Verdict::undecided)));
  double off = 0.0;
  double outward = -infinity;
  double inward = infinity;
  for (const RowResult& row : result.rows) {
    off = std::max(off, row.off_units);
    outward = std::max(outward, row.length_units);
    inward = std::min(inward, row.length);
  }
  session.say(
      fmt::format("  largest distance from the subspace {:.3g} units of noise, from the ellipse {:.3g} "
                  "units outward; shortest |u| {:.9g}",
                  off, outward, inward));
  std::size_t said = 0;
  for (std::size_t k = 0; k < result.rows.size() && said < rows_said; ++k) {
    if (result.rows[k].verdict == Verdict::consistent) continue;
    say_row(session, k, result.rows[k]);
    ++said;
  }
  const std::size_t others = result.rows.size() - result.with(Verdict::consistent);
  if (others > said) session.say(fmt::format("  ... and {} more", others - said));
}

/// Writes the proofs that rows are another model's outputs: row_NUMBER_NAME.npy for each array.
void write_row_certificates(const std::string& name, const signature::Verification& result) {
  if (name.empty()) return;
  const ArrayFolder folder(name);
  for (std::size_t k = 0; k < result.rows.size(); ++k) {
    const RowResult& row = result.rows[k];
    if (row.weights.empty()) continue;
    const auto write = [&](const char* what, std::vector<double> values) {
      folder.write(fmt::format("row_{}_{}", k, what).c_str(), std::move(values));
    };
    write("weights", row.weights);
    write("logits", row.logits);
    write("slack", row.slack);
    if (!row.tokens.empty()) write("tokens", {row.tokens.begin(), row.tokens.end()});
  }
}

int run_signature_verify(const Session& session, const SignatureVerifyOptions& options) {
  expect_folders({options.certificates});
  Inputs inputs;
  const std::optional<signature::Ellipse> ellipse = signature::read_ellipse(options.model.path);
  std::optional<SignatureHead> head;
  if (ellipse) {
    inputs.add_file(options.model.path);
  } else {
    head = read_signature_head(inputs, options.model);
  }
  const signature::Outputs outputs = options.outputs.open(
      inputs, ellipse ? ellipse->tokens : head->logits.tokens, head ? head->soft_cap : 0.0);
  inputs.keep_apart({session.json});
  const signature::VerifyOptions how{.least_mean_square = options.least_mean_square,
                                     .threads = session.threads,
                                     .progress = session.progress()};
  const signature::Verification result =
      ellipse ? signature::verify(*ellipse, outputs, how) : signature::verify(*head, outputs, how);
  AtomicGroup together;
  write_row_certificates(options.certificates, result);
  session.write_json(
      json_text(results::signature_verify(result, outputs,
                                          {.path = options.model.path,
                                           .kind = ellipse ? "ellipse" : "model",
                                           .outputs = options.outputs.values,
                                           .dimension = ellipse ? ellipse->rank : head->logits.dimension(),
                                           .temperature = options.outputs.temperature})));
  together.commit();
  describe_verification(session, result);
  if (head) say_notes(session, head->notes);
  return options.check && result.verdict != Verdict::consistent ? negative : ok;
}

}  // namespace

void add_signature_verify(CLI::App& group, Session& session) {
  const auto options = std::make_shared<SignatureVerifyOptions>();
  CLI::App* command =
      add_command(group, session, "verify", "Decide for every row whether this model can have produced it",
                  [&session, options] { return run_signature_verify(session, *options); });
  command
      ->add_option("MODEL", options->model.path,
                   "Checkpoint with a language-model head, or the ellipse that `signature extract` wrote")
      ->required();
  options->outputs.declare(*command);
  command
      ->add_option("--ids", options->outputs.ids,
                   "Token of each value, where rows do not have all tokens; one row of ids serves every row")
      ->type_name("ARRAY");
  add_model_options(*command, options->model);
  command
      ->add_option(
          "--least-mean-square", options->least_mean_square,
          "Mean square that the final norm's input never falls below; rows that need less are then not "
          "this model's (default: rows that need less than 100 eps are not decided)")
      ->type_name("M")
      ->check(numbers(0.0, 1e300));
  command
      ->add_option("--certificates", options->certificates,
                   "Write the proof for each of the first 64 rows that are proved not to be the model's into "
                   "FOLDER as .npy files")
      ->type_name("FOLDER");
  command->add_flag("--check", options->check, "Exit with status 1 unless every row is consistent");
  add_examples(*command, {"normscope signature verify openai-community/gpt2 logits.npy",
                          "normscope signature verify ellipse.safetensors logits.npy --certificates proofs"});
}

}  // namespace normscope::cli
