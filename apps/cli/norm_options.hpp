#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/verify/verify.hpp>

#include "command.hpp"

/// A norm that options describe, or that a model's gain names.
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
  /// The source of the norm for a result; empty for a norm described only by options.
  [[nodiscard]] std::optional<results::NormSource> source() const;
};

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

  /// The options themselves, those in `left_out` aside.
  [[nodiscard]] std::vector<Argument> arguments(const std::vector<std::string>& left_out = {});
  /// Reads the arrays and returns the norm.
  ///
  /// Errors    as `OpenedArray::row` and `models::describe`; CLI::ValidationError for missing options
  [[nodiscard]] NormInput open(Inputs& inputs) const;
};

/// The norm, or some of its steps, applied to keys first; without a norm they stay as they are.
struct KeyNorm {
  std::optional<NormInput> norm{};
  std::vector<std::string> steps{};  ///< empty for all four

  /// The steps that together are the norm, in their order.
  [[nodiscard]] static const std::vector<std::string>& all_steps();
  /// The norm for keys of that width.
  ///
  /// Errors    as `NormInput::of_width`
  [[nodiscard]] std::optional<GivenNorm> of_width(std::size_t width) const;
  /// Applies it to the keys.
  ///
  /// Errors    Argument if a key leaves the range of float64
  void apply(const std::optional<GivenNorm>& spec, MatrixView<double> keys) const;
  /// The norm as results state it.
  [[nodiscard]] std::optional<results::KeyNorm> stated(const std::optional<GivenNorm>& spec) const;
};

/// The options of a norm and of its steps.
struct KeyNormOptions {
  NormOptions norm;
  std::vector<std::string> steps;

  [[nodiscard]] std::vector<Argument> arguments();
  /// The norm they describe, if any of them is given.
  ///
  /// Errors    as `NormOptions::open`
  [[nodiscard]] KeyNorm open(Inputs& inputs) const;
};

/// Adds an array named on the command line.
void add_array(verify::Inputs& inputs, const std::string& role, const std::string& name,
               const MatrixInput& matrix, unsigned threads);

/// Adds gain and bias of a norm as they are used, and the names that the command line gave for them.
void add_norm(verify::Inputs& inputs, const NormOptions& options, const NormSpec& norm);

}  // namespace normscope::cli
