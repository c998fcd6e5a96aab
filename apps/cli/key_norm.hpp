#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.hpp"

namespace normscope::cli {

/// The norm, or some of its steps, applied to keys first, if any of its options is given.
struct KeyNorm {
  NormOptions norm;
  std::vector<std::string> steps;

  void declare(CLI::App& command);
  /// The norm for keys of that width; empty if no option is given.
  /// Errors    as `NormOptions::read`
  [[nodiscard]] std::optional<GivenNorm> read(std::size_t width) const;
  /// Applies it to the keys.
  /// Errors    Argument if a key leaves the range of float64
  void apply(const std::optional<GivenNorm>& spec, MatrixView<double> keys) const;
  [[nodiscard]] nlohmann::ordered_json json(const std::optional<GivenNorm>& spec) const;

 private:
  const CLI::App* command_ = nullptr;
};

}  // namespace normscope::cli
