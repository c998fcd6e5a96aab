#pragma once

#include <string>
#include <utility>
#include <vector>

#include <normscope/analysis/report.hpp>

/// The words of a report, and the commands that compute its numbers again.
namespace normscope::results {

/// A finding in words.
struct FindingText {
  std::string kind;                                     ///< "stretched_axis"
  std::string text;                                     ///< what was found, with its numbers
  std::vector<std::pair<std::string, double>> numbers;  ///< by name, at full precision
  std::string why;        ///< why it matters to someone who reads or changes the model
  std::string reproduce;  ///< the command that computes it again
};

/// `finding`, which is one of `report`.
[[nodiscard]] FindingText describe(const analysis::Finding& finding, const analysis::Report& report);

/// A headline in words.
struct HeadlineText {
  std::string number;  ///< as printed, with its unit: "22.6 ×"
  std::string of;      ///< what it is the number of
  std::string why;     ///< what follows for this model, with its numbers
};

/// `headline`, which is one of `report`.
[[nodiscard]] HeadlineText describe(const analysis::Headline& headline, const analysis::Report& report);

/// The command that computes the image of `norm` of the checkpoint at `path` again.
[[nodiscard]] std::string geometry_command(const std::string& path, const models::Norm& norm);

}  // namespace normscope::results
