#pragma once

#include <optional>
#include <string>
#include <vector>

#include <normscope/signature/verify.hpp>

#include "command.hpp"
#include "inputs.hpp"

/// Common parts of the subcommands of `signature`.
namespace normscope::cli {

/// The command-line form of rows of outputs.
struct OutputsOptions {
  std::string values;
  std::string ids;
  std::string precision;
  double temperature = 1.0;

  void declare(CLI::App& command);
  /// Requires  `inputs` outlive the result
  [[nodiscard]] signature::Outputs open(Inputs& inputs, std::size_t vocabulary, double soft_cap) const;
};

/// The head of a model in the form that signatures need, with what its description had to assume.
struct SignatureHead : signature::Head {
  std::vector<std::string> notes{};
};

/// Errors    as `selectability::vocabulary_head`
[[nodiscard]] SignatureHead read_signature_head(Inputs& inputs, const ModelName& model);

void add_signature_verify(CLI::App& group, Session& session);
void add_signature_extract(CLI::App& group, Session& session);
void add_signature_kind(CLI::App& group, Session& session);
void add_signature_compare(CLI::App& group, Session& session);

}  // namespace normscope::cli
