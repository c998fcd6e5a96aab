#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/dtype.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/signature/compare.hpp>
#include <normscope/signature/extract.hpp>
#include <normscope/signature/verify.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

using signature::Reason;
using signature::RowResult;
using signature::Verdict;

/// The command-line form of rows of outputs.
struct OutputsOptions {
  std::string values;
  std::string ids;
  std::string precision;
  double temperature = 1.0;

  [[nodiscard]] std::vector<Argument> arguments();
  /// Requires  `inputs` outlive the result
  [[nodiscard]] signature::Outputs open(Inputs& inputs, std::size_t vocabulary, double soft_cap) const;
};

/// The head of a model in the form that signatures need, with what its description had to assume.
struct SignatureHead : signature::Head {
  std::vector<std::string> notes{};
};

const std::map<std::string, Dtype> precisions = {
    {"float64", Dtype::F64}, {"float32", Dtype::F32}, {"float16", Dtype::F16}, {"bfloat16", Dtype::BF16}};

/// OUTPUTS, which comes after a model.
Argument outputs_argument(OutputsOptions& outputs) {
  return input("OUTPUTS", outputs.values,
               "Rows of logits or log-probabilities, a number for each token: X.npy, X.npz:NAME or "
               "X.safetensors:TENSOR")
      .required();
}

std::vector<Argument> OutputsOptions::arguments() {
  return {option("--temperature", temperature),
          option("--dtype", precision).one_of({"float64", "float32", "float16", "bfloat16"})};
}

signature::Outputs OutputsOptions::open(Inputs& inputs, std::size_t vocabulary, double soft_cap) const {
  signature::OutputOptions options{
      .temperature = temperature, .soft_cap = soft_cap, .vocabulary = vocabulary};
  if (!precision.empty()) options.precision = precisions.at(precision);
  return {inputs.array(values), inputs.optional_array(ids), options};
}

/// Errors    as `selectability::vocabulary_head`
SignatureHead read_signature_head(Inputs& inputs, const ModelName& model) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(model.path);
  const models::Model& described = inputs.model_of(checkpoint, model.stated);
  return {signature::head_of(selectability::vocabulary_head(checkpoint, described)), described.notes};
}

// signature verify

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
void write_row_certificates(Outputs& outputs, const std::string& folder,
                            const signature::Verification& result) {
  for (std::size_t k = 0; k < result.rows.size(); ++k) {
    const RowResult& row = result.rows[k];
    if (row.weights.empty()) continue;
    const auto write = [&](const char* what, std::vector<double> values) {
      write_array(outputs, folder, fmt::format("row_{}_{}", k, what), std::move(values));
    };
    write("weights", row.weights);
    write("logits", row.logits);
    write("slack", row.slack);
    if (!row.tokens.empty()) write("tokens", {row.tokens.begin(), row.tokens.end()});
  }
}

int run_signature_verify(const Session& session, Inputs& inputs, Outputs& outputs,
                         const SignatureVerifyOptions& options) {
  const std::optional<signature::Ellipse> ellipse = signature::read_ellipse(options.model.path);
  std::optional<SignatureHead> head;
  if (ellipse) {
    inputs.add_file(options.model.path);
  } else {
    head = read_signature_head(inputs, options.model);
  }
  const signature::Outputs rows = options.outputs.open(
      inputs, ellipse ? ellipse->tokens : head->logits.tokens, head ? head->soft_cap : 0.0);
  const signature::VerifyOptions how{.least_mean_square = options.least_mean_square,
                                     .threads = session.threads,
                                     .progress = session.progress()};
  const signature::Verification result =
      ellipse ? signature::verify(*ellipse, rows, how) : signature::verify(*head, rows, how);
  write_row_certificates(outputs, options.certificates, result);
  outputs.commit([&] {
    return json_text(
        results::signature_verify(result, rows,
                                  {.path = options.model.path,
                                   .kind = ellipse ? "ellipse" : "model",
                                   .outputs = options.outputs.values,
                                   .dimension = ellipse ? ellipse->rank : head->logits.dimension(),
                                   .temperature = options.outputs.temperature}));
  });
  describe_verification(session, result);
  if (head) say_notes(session, head->notes);
  if (!options.check || result.verdict == Verdict::consistent) return ok;
  return result.verdict == Verdict::undecided ? undecided : negative;
}

// signature extract

struct SignatureExtractOptions {
  OutputsOptions outputs;
  std::string output;
  std::string resume;
  double soft_cap = 0.0;
  std::size_t rank = 0;
};

void say_ellipse(const Session& session, const signature::Ellipse& ellipse, const std::string& output) {
  std::vector<double> errors = ellipse.errors;
  std::sort(errors.begin(), errors.end());
  session.say(fmt::format("{}: ellipse of {} axes in {} tokens, semi-axes {:.9g} to {:.9g}",
                          printable(output), ellipse.rank, ellipse.tokens, ellipse.semi_axes.front(),
                          ellipse.semi_axes.back()));
  session.say(
      fmt::format("  stated relative errors: median {:.2g}, largest {:.2g}; {} of {} axes drown in noise",
                  errors[errors.size() / 2], errors.back(), ellipse.drowned(), ellipse.rank));
  if (ellipse.drowned() > 0) {
    std::string list;
    std::size_t said = 0;
    for (std::size_t k = ellipse.rank; k-- > 0 && said < 5;) {
      if (ellipse.errors[k] <= signature::drowning) continue;
      list += fmt::format("{}{} ({:.3g})", list.empty() ? "" : ", ", k + 1, ellipse.semi_axes[k]);
      ++said;
    }
    session.say(
        fmt::format("  drowned, shortest first: axis {}{}", list, said < ellipse.drowned() ? ", ..." : ""));
  }
}

int run_signature_extract(const Session& session, Inputs& inputs, Outputs& outputs,
                          const SignatureExtractOptions& options) {
  const signature::Outputs rows = options.outputs.open(inputs, 0, options.soft_cap);
  const Progress progress = session.progress();
  const signature::Subspace subspace =
      signature::find_subspace(rows, session.threads, progress, options.rank);
  const signature::Extraction result = signature::extract(
      rows, subspace,
      {.threads = session.threads, .progress = progress, .resume = options.resume, .team = session.team});
  if (!session.team->is_first()) return result.ellipse ? ok : negative;
  if (result.ellipse) {
    outputs.write(options.output,
                  [&](const std::string& path) { signature::write_ellipse(path, *result.ellipse); });
  }
  outputs.commit(
      [&] { return json_text(results::signature_extract(result, subspace, rows, options.output)); });
  session.say(fmt::format("{} rows, {} different, of {} tokens in {}; {} unknowns, {} rounds", result.rows,
                          result.distinct, rows.vocabulary(), to_string(rows.precision().dtype),
                          signature::unknowns(subspace.rank), result.rounds));
  session.say(fmt::format(
      "  |u| - 1 of the rows: {:.3g} in root mean square, {:.2g} of what rows without a norm have",
      result.surface, result.relative_surface));
  if (!result.ellipse) {
    session.say("no ellipsoid fits: there is no norm at the end, or noise hides it; nothing is written");
    return negative;
  }
  say_ellipse(session, *result.ellipse, options.output);
  return ok;
}

// signature kind

constexpr const char* spectrum_file = "singular_values.vl.json";  ///< of --figures

struct SignatureKindOptions {
  OutputsOptions outputs;
  std::string figures;
};

std::string in_words(const signature::Kind& kind, const signature::Subspace& subspace) {
  using signature::FinalNorm;
  const std::size_t rank = subspace.rank;
  if (rank == 0) return "cannot tell: all rows are the same up to a number of their own";
  if (rank + 1 >= subspace.tokens) {
    return fmt::format("cannot tell: rows fill all {} dimensions of {} tokens; the width is {} or more", rank,
                       subspace.tokens, rank);
  }
  if (subspace.fills)
    return fmt::format("cannot tell: the rank is at least {}, as many as there are rows", rank);
  const std::string alternatives =
      fmt::format("LayerNorm of width {} or RMSNorm of width {}", rank + 1, rank);
  if (kind.norm == FinalNorm::unknown) {
    return fmt::format("{}, if there is a norm, which {} rows would tell", alternatives, kind.rows_needed);
  }
  if (kind.norm == FinalNorm::none)
    return fmt::format("no norm at the end, or noise hides it; width {} or more", rank);
  return fmt::format("{} of width {} ({}; the one width is the rounder number)",
                     kind.norm == FinalNorm::layer ? "LayerNorm" : "RMSNorm", kind.width, alternatives);
}

int run_signature_kind(const Session& session, Inputs& inputs, Outputs& outputs,
                       const SignatureKindOptions& options) {
  const signature::Outputs rows = options.outputs.open(inputs, 0, 0.0);
  const Progress progress = session.progress();
  const signature::Subspace subspace = signature::find_subspace(rows, session.threads, progress);
  const signature::Kind kind =
      signature::kind_of(rows, subspace, {.threads = session.threads, .progress = progress, .resume = {}});
  outputs.write_text_into(options.figures, spectrum_file,
                          [&] { return json_text(figures::singular_values(subspace), 1) + "\n"; });
  outputs.commit([&] { return json_text(results::signature_kind(kind, subspace, rows)); });
  session.say(in_words(kind, subspace));
  if (subspace.rank > 0) {
    const std::vector<double>& values = subspace.singular_values;
    session.say(fmt::format(
        "  rank {}: singular values {:.4g} to {:.4g}, the next {:.2g}; rounding of {} explains {:.2g}",
        subspace.rank, values.front(), values[subspace.rank - 1],
        subspace.rank < values.size() ? values[subspace.rank] : 0.0, to_string(rows.precision().dtype),
        subspace.noise));
  }
  if (kind.extraction.rows > 0) {
    session.say(fmt::format("  an ellipsoid leaves {:.2g} of what rows without a norm leave",
                            kind.extraction.relative_surface));
  }
  return ok;
}

// signature compare

struct SignatureCompareOptions {
  std::string one;
  std::string other;
  bool check = false;
};

signature::Ellipse read_one(Inputs& inputs, const std::string& path, unsigned threads) {
  if (std::optional<signature::Ellipse> ellipse = signature::read_ellipse(path)) {
    inputs.add_file(path);
    return std::move(*ellipse);
  }
  return signature::ellipse_of(read_signature_head(inputs, {.path = path}).logits, threads);
}

int run_signature_compare(const Session& session, Inputs& inputs, Outputs& outputs,
                          const SignatureCompareOptions& options) {
  const signature::Ellipse one = read_one(inputs, options.one, session.threads);
  const signature::Ellipse other = read_one(inputs, options.other, session.threads);
  const signature::Comparison result = signature::compare(one, other, session.threads);
  outputs.commit([&] { return json_text(results::signature_compare(result, options.one, options.other)); });
  session.say(std::string(to_string(result.relation)));
  session.say(fmt::format(
      "  scale {:.9g}; shape differs by {:.3g}, of which stated errors explain {:.2g}; centres by {:.3g}",
      result.scale, result.shape, result.tolerance, result.centre));
  session.say(fmt::format("  {:.3g} of the second lies outside the subspace of the first, {:.3g} by chance",
                          result.outside, result.by_chance));
  return options.check && result.relation != signature::Relation::same ? negative : ok;
}

Command verify_outputs_command() {
  const auto options = std::make_shared<SignatureVerifyOptions>();
  return {.name = "verify",
          .text = "Decide for every row whether this model can have produced it",
          .inputs = {input("MODEL", options->model.path,
                           "Checkpoint with a language-model head, or the ellipse that `signature extract` "
                           "wrote")
                         .required(),
                     outputs_argument(options->outputs)},
          .outputs = {output("--certificates", options->certificates, Role::folder)
                          .says("the proof for each of the first 64 rows that are proved not to be the "
                                "model's")},
          .options = joined(joined({option("--check", options->check).says("every row is consistent"),
                                    option("--ids", options->outputs.ids),
                                    option("--least-mean-square", options->least_mean_square)},
                                   options->outputs.arguments()),
                            model_options(options->model)),
          .examples = {"normscope signature verify openai-community/gpt2 logits.npy",
                       "normscope signature verify ellipse.safetensors logits.npy --certificates proofs"},
          .run = with(run_signature_verify, options)};
}

Command kind_command() {
  const auto options = std::make_shared<SignatureKindOptions>();
  return {.name = "kind",
          .text = "Tell kind and width of the final norm from outputs alone",
          .inputs = {outputs_argument(options->outputs)},
          .outputs = {output("--figures", options->figures, Role::folder, {spectrum_file})
                          .says("the singular values")},
          .options = options->outputs.arguments(),
          .examples = {"normscope signature kind logits.npy"},
          .run = with(run_signature_kind, options)};
}

Command compare_ellipses_command() {
  const auto options = std::make_shared<SignatureCompareOptions>();
  return {.name = "compare",
          .text = "Tell whether two ellipses are the same, rescaled, fine-tuned or unrelated",
          .inputs = {input("ONE", options->one, "Ellipse that `signature extract` wrote, or a checkpoint")
                         .required(),
                     input("OTHER", options->other, "Another one of the same tokens").required()},
          .options = {option("--check", options->check).says("they are the same")},
          .examples = {"normscope signature compare models/kjv_gpt models/kjv_gpt",
                       "normscope signature compare ellipse.safetensors other.safetensors --check"},
          .run = with(run_signature_compare, options)};
}

}  // namespace

Command signature_extract_command() {
  const auto options = std::make_shared<SignatureExtractOptions>();
  const CLI::Validator is_named(
      [](std::string& name) {
        return std::filesystem::path(name).extension() == ".safetensors" ? ""
                                                                         : "expected a name in .safetensors";
      },
      "");
  return {.name = "extract",
          .text = "Find the ellipse that outputs lie on, from outputs alone",
          .inputs = {outputs_argument(options->outputs)},
          .outputs = {output("-o,--output", options->output)
                          .typed("ELLIPSE.safetensors")
                          .says("the ellipse")
                          .within(is_named)
                          .required(),
                      output("--resume", options->resume)},
          .options = joined({option("--soft-cap", options->soft_cap), option("--rank", options->rank)},
                            options->outputs.arguments()),
          .footer =
              "An ellipse of N axes has N (N + 3)/2 unknowns, and needs as many different rows, better "
              "twice as many. Exit status 1: no ellipsoid fits.",
          .examples = {"normscope signature extract logits.npy -o ellipse.safetensors"},
          .run = with(run_signature_extract, options)};
}

Command signature_command() {
  return {.name = "signature",
          .text = "Identify the model that given outputs come from",
          .footer = "The final norm puts a model's logits on an ellipsoid of its own.",
          .examples = {"normscope signature compare models/kjv_gpt models/kjv_gpt",
                       "normscope signature verify --help"},
          .commands = {verify_outputs_command(), signature_extract_command(), kind_command(),
                       compare_ellipses_command()}};
}

}  // namespace normscope::cli
