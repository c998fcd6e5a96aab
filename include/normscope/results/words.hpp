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

/// The words of a report: numbers as text, findings and headlines as sentences, and the commands that compute
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

/// A headline in words.
struct HeadlineText {
  std::string number{};                  ///< as printed, with its unit: "22.6 ×"
  std::string of{};                      ///< what it is the number of
  std::string why{};                     ///< what follows for this model, with its numbers
  analysis::Topic topic{};               ///< as of the headline
  std::optional<std::size_t> norm{};     ///< the norm that it is about
  std::optional<std::size_t> finding{};  ///< index of the finding that it states
};

/// `headline`, which is one of `report`, in words.
[[nodiscard]] HeadlineText describe(const analysis::Headline& headline, const analysis::Report& report);

/// The command that computes the image of `norm` of the checkpoint at `path` again.
[[nodiscard]] std::string geometry_command(const std::string& path, const models::Norm& norm);

}  // namespace normscope::results
