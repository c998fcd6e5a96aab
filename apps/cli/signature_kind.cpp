#include <memory>
#include <string>

#include <fmt/format.h>

#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/signature/compare.hpp>

#include "signature.hpp"

namespace normscope::cli {
namespace {

struct SignatureKindOptions {
  OutputsOptions outputs;
  std::string figure;
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

int run_signature_kind(const Session& session, const SignatureKindOptions& options) {
  expect_writable({options.figure});
  Inputs inputs;
  const signature::Outputs outputs = options.outputs.open(inputs, 0, 0.0);
  inputs.keep_apart({options.figure, session.json});
  const Progress progress = session.progress();
  const signature::Subspace subspace = signature::find_subspace(outputs, session.threads, progress);
  const signature::Kind kind =
      signature::kind_of(outputs, subspace, {.threads = session.threads, .progress = progress, .resume = {}});
  AtomicGroup together;
  if (!options.figure.empty()) {
    AtomicFile file(options.figure);
    file.write(json_text(figures::singular_values(subspace), 1) + "\n");
    file.commit();
  }
  session.write_json(json_text(results::signature_kind(kind, subspace, outputs)));
  together.commit();
  session.say(in_words(kind, subspace));
  if (subspace.rank > 0) {
    const std::vector<double>& values = subspace.singular_values;
    session.say(fmt::format(
        "  rank {}: singular values {:.4g} to {:.4g}, the next {:.2g}; rounding of {} explains {:.2g}",
        subspace.rank, values.front(), values[subspace.rank - 1],
        subspace.rank < values.size() ? values[subspace.rank] : 0.0, to_string(outputs.precision().dtype),
        subspace.noise));
  }
  if (kind.extraction.rows > 0) {
    session.say(fmt::format("  an ellipsoid leaves {:.2g} of what rows without a norm leave",
                            kind.extraction.relative_surface));
  }
  return ok;
}

}  // namespace

void add_signature_kind(CLI::App& group, Session& session) {
  const auto options = std::make_shared<SignatureKindOptions>();
  CLI::App* command =
      add_command(group, session, "kind", "Tell kind and width of the final norm from outputs alone",
                  [&session, options] { return run_signature_kind(session, *options); });
  options->outputs.declare(*command);
  command->add_option("--figure", options->figure, "Write the singular values as a Vega-Lite figure")
      ->type_name("FILE.json");
  add_examples(*command, {"normscope signature kind logits.npy"});
}

}  // namespace normscope::cli
