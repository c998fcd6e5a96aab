#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.hpp"

namespace normscope::cli {

/// The norm, or some of its steps, applied to keys first; without a norm they stay as they are.
struct KeyNorm {
  std::optional<NormInput> norm{};
  std::vector<std::string> steps{};  ///< empty for all four

  /// The norm for keys of that width.
  ///
  /// Errors    as `NormInput::of_width`
  [[nodiscard]] std::optional<GivenNorm> of_width(std::size_t width) const;
  /// Applies it to the keys.
  ///
  /// Errors    Argument if a key leaves the range of float64
  void apply(const std::optional<GivenNorm>& spec, MatrixView<double> keys) const;
  [[nodiscard]] nlohmann::ordered_json json(const std::optional<GivenNorm>& spec) const;
};

/// The options of a norm and of its steps.
struct KeyNormOptions {
  NormOptions norm;
  std::vector<std::string> steps;

  void declare(CLI::App& command);
  /// The norm they describe, if any of them is given.
  ///
  /// Errors    as `NormOptions::open`
  [[nodiscard]] KeyNorm open(Inputs& inputs) const;

 private:
  const CLI::App* command_ = nullptr;
};

}  // namespace normscope::cli
