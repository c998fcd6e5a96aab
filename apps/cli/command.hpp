#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/core/text.hpp>
#include <normscope/json/text.hpp>

#include "session.hpp"

/// What the subcommands share. A subcommand is one file with one `add_…` function, which declares
/// its options and sets `Session::run` when it is the one chosen; it parses and prints, no more.
namespace normscope::cli {

/// The norm of a model whose gain the command line named, and what of it stands in for options not given.
struct ModelNorm {
  std::string name;                  ///< of the norm, as `report` calls it
  std::string title;                 ///< of the model
  std::vector<std::string> taken{};  ///< of "norm", "eps", "gain_offset", "groups" and "bias"
  std::string text{};                ///< what they are

  /// All that in a line.
  [[nodiscard]] std::string line() const;
};

/// A norm that options describe.
struct GivenNorm : NormSpec {
  std::optional<ModelNorm> model{};

  /// Tells people where it is from, where that is a model.
  void say_source(const Session& session) const;
  /// The same for the machine form; null for a norm that is from the options alone.
  [[nodiscard]] nlohmann::ordered_json source() const;
};

/// Options that describe a norm: --norm, --gain, --gain-offset, --bias, --groups, --eps. Of a gain that is
/// MODEL:TENSOR, the options that are not given are the model's.
struct NormOptions {
  std::optional<std::string> kind;
  std::string gain;
  std::string bias;
  std::optional<double> gain_offset;
  std::optional<std::size_t> groups;
  std::optional<double> eps;
  double usual_eps = 1e-5;      ///< without --eps and without a model
  bool bias_is_used = true;     ///< whether a model's bias that is not finite is bad input
  bool groups_are_used = true;  ///< whether the model's groups are taken

  void declare(CLI::App& command);
  /// The norm they describe, arrays read; `width` where no array gives it.
  /// Errors    as `read_row`, `model::describe`, `validate`; CLI::ValidationError where options are missing
  [[nodiscard]] GivenNorm read(std::size_t width) const;
};

/// Every file that makes up a checkpoint, and every file an array's name may stand for.
[[nodiscard]] std::vector<std::filesystem::path> files_of(const checkpoint::Checkpoint& checkpoint);
[[nodiscard]] std::vector<std::filesystem::path> files_of_arrays(const std::vector<std::string>& arrays);

/// Prints what a model's description had to assume, or could not tell.
void say_notes(const Session& session, const std::vector<std::string>& notes);

void add_report(CLI::App& root, Session& session);
void add_inspect(CLI::App& root, Session& session);
void add_geometry(CLI::App& root, Session& session);
void add_apply(CLI::App& root, Session& session);
void add_build(CLI::App& root, Session& session);
void add_run(CLI::App& root, Session& session);
void add_curvature(CLI::App& root, Session& session);
void add_separate(CLI::App& root, Session& session);
void add_train(CLI::App& root, Session& session);
void add_count(CLI::App& root, Session& session);
void add_lab(CLI::App& root, Session& session);
void add_select(CLI::App& root, Session& session);
void add_heads(CLI::App& root, Session& session);
void add_reach(CLI::App& root, Session& session);
void add_verify(CLI::App& root, Session& session);
void add_explore(CLI::App& root, Session& session);

}  // namespace normscope::cli
