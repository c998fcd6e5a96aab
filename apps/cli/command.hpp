#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/text.hpp>
#include <normscope/models/model.hpp>
#include <normscope/results/documents.hpp>

#include "session.hpp"

/// Common code of the subcommands. A subcommand is one file with one `add_…` function, which declares its
/// options and sets `Session::run` if it is chosen; it only parses and prints.
namespace normscope::cli {

/// The norm of a model whose gain was given on the command line, and the options that are taken from it.
struct ModelNorm {
  std::string name;                  ///< of the norm, as in `report`
  std::string title;                 ///< of the model
  std::vector<std::string> taken{};  ///< of "norm", "eps", "gain_offset", "groups" and "bias"
  std::string text{};                ///< their values

  /// All of that in one line.
  [[nodiscard]] std::string line() const;
};

/// A norm described by options.
struct GivenNorm : NormSpec {
  std::optional<ModelNorm> model{};

  /// Prints the source of the norm, if it is a model.
  void say_source(const Session& session) const;
  /// The same for the JSON document; null for a norm described only by options.
  [[nodiscard]] nlohmann::ordered_json source() const;
};

class Inputs;

/// A norm from the command line whose arrays have been read; only its width may still be unknown.
class NormInput {
 public:
  explicit NormInput(GivenNorm norm) : norm_(std::move(norm)) {}

  /// The norm for rows of that width; if it is 0, the width is that of gain or bias.
  ///
  /// Errors    as `validate`; CLI::ValidationError if the width is unknown
  [[nodiscard]] GivenNorm of_width(std::size_t width) const;

 private:
  GivenNorm norm_;
};

/// Options that describe a norm: --norm, --gain, --gain-offset, --bias, --groups, --eps. If the gain is
/// MODEL:TENSOR, missing options are taken from the model.
struct NormOptions {
  std::optional<std::string> kind;
  std::string gain;
  std::string bias;
  std::optional<double> gain_offset;
  std::optional<std::size_t> groups;
  std::optional<double> eps;
  std::optional<double> alpha{};
  std::optional<double> shift{};
  double usual_eps = 1e-5;      ///< without --eps and without a model
  bool bias_is_used = true;     ///< whether a bias of the model that is not finite is an error
  bool groups_are_used = true;  ///< whether the model's groups are used

  void declare(CLI::App& command);
  /// Reads the arrays and returns the norm.
  ///
  /// Errors    as `OpenedArray::row` and `models::describe`; CLI::ValidationError for missing options
  [[nodiscard]] NormInput open(Inputs& inputs) const;
};

/// A model named on the command line, with what its user states of it.
struct ModelName {
  std::string path{};
  models::Stated stated{};
};

/// Declares --arch and --heads.
void add_stated(CLI::App& command, models::Stated& stated);
/// Declares --arch, --heads and --member, which completes the path of a model declared before to FILE:MEMBER.
void add_model_options(CLI::App& command, ModelName& model);

/// Prints the assumptions and unknowns of a model's description.
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
void add_rewrite(CLI::App& root, Session& session);
void add_compare(CLI::App& root, Session& session);
void add_ranges(CLI::App& root, Session& session);
void add_trace(CLI::App& root, Session& session);
void add_signature(CLI::App& root, Session& session);
void add_explore(CLI::App& root, Session& session);
void add_completion(CLI::App& root, Session& session);
void add_manual(CLI::App& root, Session& session);

}  // namespace normscope::cli
