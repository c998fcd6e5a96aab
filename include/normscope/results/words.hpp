#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/analysis/report.hpp>
#include <normscope/core/text.hpp>

/// The words of a report: numbers as text, causes and findings as sentences, and the commands that compute
/// them again.
namespace normscope::results {

/// Three significant digits, without an exponent for numbers of ordinary size.
[[nodiscard]] inline std::string format_number(double value) {
  if (std::isinf(value)) return "more than 1e308";
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value)
                                                           : fmt::format("{:.3g}", value);
}

/// An upper bound in the format of `format_number`, rounded up.
[[nodiscard]] inline std::string format_at_most(double value) {
  if (std::isinf(value)) return format_number(value);
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? format_number(std::ceil(value))
                                                           : normscope::at_most(value, 3);
}

/// A lower bound in the format of `format_number`, rounded down.
[[nodiscard]] inline std::string format_at_least(double value) {
  if (std::isinf(value)) return format_number(value);
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? format_number(std::floor(value))
                                                           : normscope::at_least(value, 3);
}

/// A lower bound of e^`exponent`, for a positive exponent: in the format of `format_number` below a million,
/// a power of ten above, "10⁷⁶", which may be larger than any double.
///
/// Accuracy  no more than e^`exponent` (test: NumberText.WritesPowersOfEAsLowerBounds)
[[nodiscard]] inline std::string format_exp_at_least(double exponent) {
  // Takes away more than the rounding of exp and of the quotient can add.
  constexpr double below = 1.0 - 1e-15;
  const double value = std::exp(exponent) * below;
  if (value < 1e6) return format_at_least(value);
  constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string power = "10";
  for (const char digit : fmt::format("{:.0f}", std::floor(exponent / std::log(10.0) * below))) {
    power += digits[digit - '0'];
  }
  return power;
}

/// A finding in words.
struct FindingText {
  std::string kind{};                                     ///< "stretched_axis"
  std::string text{};                                     ///< what was found
  std::vector<std::pair<std::string, double>> numbers{};  ///< by name
  std::string why{};        ///< why it matters to someone who reads or changes the model; may be empty
  std::string reproduce{};  ///< the command that computes the numbers again
  std::optional<std::size_t> norm{};  ///< as of the finding
  double severity = 0.0;              ///< as of the finding
};

/// `finding`, which is one of `report`, in words.
[[nodiscard]] FindingText describe(const analysis::Finding& finding, const analysis::Report& report);

/// An unusual value in words.
struct NumberText {
  analysis::Measure measure{};
  std::string name{};   ///< "longest axis"
  std::string text{};   ///< "13.9 times the median axis"
  std::string usual{};  ///< "at most 2.94"
  double value = 0.0;
  double limit = 0.0;                 ///< of what is usual
  std::size_t within = 0, of = 0;     ///< reference models within the limit, and all that have the measure
  std::optional<std::size_t> norm{};  ///< of a measure of norms
};

/// A cause in words.
struct CauseText {
  std::string title{};
  std::vector<NumberText> numbers{};  ///< most unusual first
  std::string why{};                  ///< why it matters; may be empty
  std::string advice{};               ///< what to do; may be empty
  std::string reproduce{};            ///< the command that computes the numbers again
  std::vector<std::pair<std::string, analysis::CoordinateReader>> readers{};  ///< by name, "head 3.7"

  /// The title with what is usual of its first number.
  [[nodiscard]] std::string line() const;
};

/// `cause`, which is one of `report`, in words.
[[nodiscard]] CauseText describe(const analysis::Cause& cause, const analysis::Report& report);

/// The id of the chart of the cause at that index of a report.
[[nodiscard]] inline std::string cause_chart_id(std::size_t index) {
  return fmt::format("cause-{}", index + 1);
}

/// What a report says first, in one sentence.
[[nodiscard]] std::string verdict(const analysis::Report& report);

/// A name of more than `most` bytes without its middle.
[[nodiscard]] std::string shortened(const std::string& name, std::size_t most);

/// `text` quoted for a shell, as one word for any bytes.
[[nodiscard]] std::string shell_quoted(const std::string& text);

/// A path as commands of a report name it: a relative one as it is, of an absolute one the last part, since
/// the report is read elsewhere.
[[nodiscard]] std::string command_path(const std::string& path);

/// The command that computes the image of `norm` of the checkpoint at `path` again.
[[nodiscard]] std::string geometry_command(const std::string& path, const models::Norm& norm);

}  // namespace normscope::results
