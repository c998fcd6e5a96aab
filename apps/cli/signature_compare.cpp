#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <normscope/results/documents.hpp>
#include <normscope/signature/compare.hpp>

#include "signature.hpp"

namespace normscope::cli {
namespace {

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

int run_signature_compare(const Session& session, const SignatureCompareOptions& options) {
  Inputs inputs;
  const signature::Ellipse one = read_one(inputs, options.one, session.threads);
  const signature::Ellipse other = read_one(inputs, options.other, session.threads);
  inputs.keep_apart({session.json});
  const signature::Comparison result = signature::compare(one, other, session.threads);
  if (session.wants_json()) {
    session.write_json(json_text(results::signature_compare(result, options.one, options.other)));
  }
  session.say(std::string(to_string(result.relation)));
  session.say(fmt::format(
      "  scale {:.9g}; shape differs by {:.3g}, of which stated errors explain {:.2g}; centres by {:.3g}",
      result.scale, result.shape, result.tolerance, result.centre));
  session.say(fmt::format("  {:.3g} of the second lies outside the subspace of the first, {:.3g} by chance",
                          result.outside, result.by_chance));
  return options.check && result.relation != signature::Relation::same ? negative : ok;
}

}  // namespace

void add_signature_compare(CLI::App& group, Session& session) {
  const auto options = std::make_shared<SignatureCompareOptions>();
  CLI::App* command = add_command(group, session, "compare",
                                  "Tell whether two ellipses are the same, rescaled, fine-tuned or unrelated",
                                  [&session, options] { return run_signature_compare(session, *options); });
  command->add_option("ONE", options->one, "Ellipse that `signature extract` wrote, or a checkpoint")
      ->required();
  command->add_option("OTHER", options->other, "Another one of the same tokens")->required();
  command->add_flag("--check", options->check, "Exit with status 1 unless they are the same");
  add_examples(*command, {"normscope signature compare models/wordlist_gpt models/wordlist_gpt",
                          "normscope signature compare ellipse.safetensors other.safetensors --check"});
}

}  // namespace normscope::cli
