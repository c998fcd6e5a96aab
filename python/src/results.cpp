#include "results.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/documents/geometry.hpp>
#include <normscope/documents/text.hpp>
#include <normscope/documents/verification.hpp>
#include <normscope/figures/analyses.hpp>
#include <normscope/geometry/image.hpp>
#include <normscope/selectability/survey.hpp>

namespace normscope::python {

nlohmann::ordered_json chart_entry(std::string name, nlohmann::ordered_json specification) {
  return {{"id", std::move(name)}, {"spec", std::move(specification)}};
}

Illustrated geometry_document(const NormSpec& spec, bool has_gain, std::size_t axes, bool null_space,
                              unsigned threads, const Progress& progress) {
  const geometry::NormImage image(spec, threads, progress);
  documents::GeometryDetails details;
  details.axes = documents::longest_axes(image, axes, threads);
  if (null_space) details.null_space = documents::null_space(image);
  if (has_gain) details.gain = audit::statistics(spec.gain);
  return {json_text(documents::geometry(spec, image, details)),
          json_text(figures::image_charts(image.semi_axes(), image.median()))};
}

Illustrated reach_document(const audit::VocabularyHead& head, const documents::ReachDetails& details,
                           const ReachSearch& search, unsigned threads, const Progress& progress) {
  for (const std::size_t token : search.tokens) {
    if (token >= head.logits.tokens) {
      throw Error(ErrorCode::Argument, fmt::format("reach: token {} is not among the {}, expected 0 to {}",
                                                   token, head.logits.tokens, head.logits.tokens - 1));
    }
  }
  const selectability::ReachOptions how{.threads = threads,
                                        .tolerance = details.tolerance,
                                        .progress = progress,
                                        .work = selectability::budget_unit * search.budget};
  selectability::Survey survey;
  selectability::decide(head.logits, survey.tokens, how);
  selectability::finish(head.logits, survey,
                        {.nearest = search.nearest,
                         .probabilities = selectability::Probabilities::extremes,
                         .asked = search.tokens,
                         .probability_gap = 1e-3},
                        how);
  if (head.soft_cap > 0.0) audit::cap_probabilities(head, survey, threads);
  return {json_text(documents::reach(head, survey, details)), json_text(figures::reach_charts(survey))};
}

std::string verification_document(const certificates::Result& result,
                                  const certificates::Verification& found) {
  return json_text(documents::verification(result.kind(), found));
}

}  // namespace normscope::python
