#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/verify/verify.hpp>

#include "command.hpp"
#include "inputs.hpp"
#include "verify_inputs.hpp"

namespace normscope::cli {
namespace {

using verify::Finding;
using verify::Result;
using verify::Verification;

/// Largest number of findings printed of each kind.
constexpr std::size_t findings_said = 10;

/// Exit status where no statement fails, but some are left without a proof.
constexpr int left_unproved = 4;

struct VerifyOptions {
  std::string result;
  std::vector<std::string> inputs;
  std::string certificates;
};

Result read_result(const std::string& path) {
  const MappedFile file(path);
  return {{reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, printable(path)};
}

void say_findings(const Session& session, const char* what, const std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < findings.size() && i < findings_said; ++i) {
    session.say(fmt::format("  {}: {}: {}", what, printable(findings[i].item), findings[i].reason));
  }
  if (findings.size() > findings_said)
    session.say(fmt::format("  ... and {} more", findings.size() - findings_said));
}

int run_verify(const Session& session, const VerifyOptions& options) {
  const Result result = read_result(options.result);
  Inputs inputs;
  inputs.add_file(options.result);
  const Verification found = verify_result(
      result, {options.inputs, options.certificates, session.json, session.threads, session.progress()},
      inputs);
  session.write_json(json_text(results::verification(result.kind(), found)));
  session.say(fmt::format("{}: {} checked, {} failed, {} not proved", result.kind(),
                          counted(found.checked, "statement"), found.failed.size(),
                          found.not_checkable.size()));
  say_findings(session, "failed", found.failed);
  say_findings(session, "not proved", found.not_checkable);
  if (!found.failed.empty()) return negative;
  return found.not_checkable.empty() ? int{ok} : left_unproved;
}

}  // namespace

void add_verify(CLI::App& root, Session& session) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      add_command(root, session, "verify",
                  "Recheck a result from its JSON and its inputs alone; list what they do not prove",
                  [&session, options] { return run_verify(session, *options); });
  command->add_option("RESULT", options->result, "Result of select, separate, reach or heads (their --json)")
      ->required();
  command->add_option(
      "INPUTS", options->inputs,
      "Inputs of the result, in the order in which it names them (default: the files it names)");
  command
      ->add_option("--certificates", options->certificates,
                   "Folder of the certificates that are not in RESULT (default: the one it names)")
      ->type_name("FOLDER");
  command->footer(
      "Exit status 0 if every statement is proved, 1 if one does not hold, 4 if all that fail to be proved "
      "are without a proof in the result.");
  add_examples(*command, {"normscope heads models/wordlist_gpt --certificates --json heads.json",
                          "normscope verify heads.json"});
}

}  // namespace normscope::cli
