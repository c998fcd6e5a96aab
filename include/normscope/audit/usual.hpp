#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The ranges that measures of norms have in trained models of a family, with which another model of the
/// family is compared. `scripts/usual` writes the table from the trained models that the tests use;
/// docs/models.md names them.
namespace normscope::audit {

struct NormReport;

/// The values of a measure between which 90 % of a family's norms outside attention lie.
struct UsualRange {
  std::string_view measure;  ///< "condition", "longest_over_median", ...: the names in the report's JSON
  double low = 0.0, high = 0.0;
};

struct UsualFamily {
  std::string_view title;                           ///< "GPT-2"
  std::span<const std::string_view> architectures;  ///< short names of its architectures
  std::span<const std::string_view> models;         ///< those that were measured
  std::size_t norms = 0;                            ///< of these models
  std::span<const UsualRange> ranges;

  /// The range of a measure, or null.
  [[nodiscard]] const UsualRange* range(std::string_view measure) const;
  /// "usual: 1.4 to 20 in 90 % of the norms of 4 GPT-2 models"; empty without a range.
  [[nodiscard]] std::string text(std::string_view measure) const;
};

/// One norm's value of a measure of that table; empty if the norm has none.
[[nodiscard]] std::optional<double> measured(const NormReport& norm, std::string_view measure);

/// The family that has the architecture of this short name, or null.
[[nodiscard]] const UsualFamily* usual_family(std::string_view architecture);

}  // namespace normscope::audit
