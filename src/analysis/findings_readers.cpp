#include <algorithm>

#include <normscope/analysis/text.hpp>
#include "finding_rules.hpp"

namespace normscope::analysis {
namespace {

/// Share of a reader's squared weight from which its removal is a finding, also as a multiple of chance.
constexpr double much_removed = 0.05;
constexpr double times_chance = 10.0;
/// Multiple of the mean share from which a reader is said to read a feature.
constexpr double times_mean = 20.0;

std::string reader_name(const NormReport& norm, const Reader& reader) {
  const models::Linear& linear = norm.norm.readers[reader.index];
  return fmt::format("{} ({})", linear.role, linear.weight.selector());
}

void removed_weight(const Report& report, Findings& findings) {
  const NormReport* norm = nullptr;
  const Reader* most = nullptr;
  for (const NormReport& one : report.norms) {
    for (const Reader& reader : one.readers) {
      if (reader.removed < std::max(much_removed, times_chance * reader.chance)) continue;
      if (most != nullptr && reader.removed <= most->removed) continue;
      norm = &one;
      most = &reader;
    }
  }
  if (most == nullptr) return;
  findings.push_back(
      {.kind = "removed_weight",
       .norm = static_cast<std::size_t>(norm - report.norms.data()),
       .text = fmt::format("{} % of the squared weight of {} lies along what the projection of {} "
                           "removes, against {} % by chance: it has no effect.",
                           number(100.0 * most->removed), reader_name(*norm, *most), norm->norm.name,
                           number(100.0 * most->chance)),
       .numbers = {{"removed", most->removed}, {"chance", most->chance}},
       .severity = 0.3 + 0.4 * most->removed,
       .reproduce = norm->reproduce});
}

/// The reader that uses the feature that is unusual in most norms.
void feature_readers(const Report& report, Findings& findings) {
  if (report.features.empty() || report.features[0].unusual() < 2) return;
  const UnusualFeature& feature = report.features[0];
  const NormReport* norm = nullptr;
  const Reader* most = nullptr;
  double largest = 0.0;
  for (const std::size_t i : feature.norms) {
    const NormReport& one = report.norms[i];
    for (const Reader& reader : one.readers) {
      for (const Component& component : reader.features) {
        if (component.coordinate != feature.coordinate || component.weight <= largest) continue;
        if (component.weight * static_cast<double>(one.norm.width) < times_mean) continue;
        largest = component.weight;
        norm = &one;
        most = &reader;
      }
    }
  }
  if (most == nullptr) return;
  findings.push_back(
      {.kind = "feature_reader",
       .norm = static_cast<std::size_t>(norm - report.norms.data()),
       .text =
           fmt::format("Coordinate {}, unusual in {} of {} norms, is read most by {}: {} % of its squared "
                       "weight with the gain, {} times the mean of all coordinates.",
                       feature.coordinate, feature.unusual(), feature.norms.size(), reader_name(*norm, *most),
                       number(100.0 * largest), number(largest * static_cast<double>(norm->norm.width))),
       .numbers = {{"coordinate", static_cast<double>(feature.coordinate)}, {"share", largest}},
       .severity = 0.3,
       .reproduce = norm->reproduce});
}

}  // namespace

void add_reader_findings(const Report& report, Findings& findings) {
  removed_weight(report, findings);
  feature_readers(report, findings);
}

}  // namespace normscope::analysis
