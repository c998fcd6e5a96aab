#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <normscope/results/documents.hpp>
#include <normscope/signature/extract.hpp>

#include "signature.hpp"

namespace normscope::cli {
namespace {

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

int run_signature_extract(const Session& session, const SignatureExtractOptions& options) {
  expect_writable({options.output, options.resume});
  Inputs inputs;
  const signature::Outputs outputs = options.outputs.open(inputs, 0, options.soft_cap);
  inputs.keep_apart({options.output, options.resume, session.json});
  const Progress progress = session.progress();
  const signature::Subspace subspace =
      signature::find_subspace(outputs, session.threads, progress, options.rank);
  const signature::Extraction result = signature::extract(
      outputs, subspace,
      {.threads = session.threads, .progress = progress, .resume = options.resume, .team = session.team});
  if (!session.team->is_first()) return result.ellipse ? ok : negative;
  AtomicGroup together;
  if (result.ellipse) signature::write_ellipse(options.output, *result.ellipse);
  session.write_json(json_text(results::signature_extract(result, subspace, outputs, options.output)));
  together.commit();
  session.say(fmt::format("{} rows, {} different, of {} tokens in {}; {} unknowns, {} rounds", result.rows,
                          result.distinct, outputs.vocabulary(), to_string(outputs.precision().dtype),
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

}  // namespace

void add_signature_extract(CLI::App& group, Session& session) {
  const auto options = std::make_shared<SignatureExtractOptions>();
  CLI::App* command =
      add_command(group, session, "extract", "Find the ellipse that outputs lie on, from outputs alone",
                  [&session, options] { return run_signature_extract(session, *options); });
  options->outputs.declare(*command);
  command->add_option("--output,-o", options->output, "File to write: the ellipse, as .safetensors")
      ->type_name("ELLIPSE.safetensors")
      ->required()
      ->check(CLI::Validator(
          [](std::string& name) {
            return std::filesystem::path(name).extension() == ".safetensors"
                       ? ""
                       : "expected a name in .safetensors";
          },
          ""));
  command
      ->add_option("--soft-cap", options->soft_cap,
                   "C of C tanh(logit/C), which the model applies last (default: none)")
      ->type_name("C")
      ->check(numbers(1e-6, 1e300));
  command
      ->add_option(
          "--rank", options->rank,
          "Number of axes, where outputs have more noise than their type (default: found from the rows)")
      ->type_name("N")
      ->check(counts(1, largest_count));
  command
      ->add_option("--resume", options->resume,
                   "Save the state of the fit in FILE and continue from it; Ctrl-C saves it too")
      ->type_name("FILE");
  command->footer(
      "An ellipse of N axes has N (N + 3)/2 unknowns, and needs as many different rows, better twice as "
      "many. Exit "
      "status 1: no ellipsoid fits.");
  add_examples(*command, {"normscope signature extract logits.npy -o ellipse.safetensors"});
}

}  // namespace normscope::cli
