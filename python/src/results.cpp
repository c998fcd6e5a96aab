#include "results.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::python {

nlohmann::ordered_json chart_entry(std::string name, nlohmann::ordered_json specification) {
  return {{"id", std::move(name)}, {"spec", std::move(specification)}};
}

Illustrated geometry_document(const NormSpec& spec, bool has_gain, std::size_t axes, bool null_space,
                              unsigned threads, const Progress& progress) {
  const norm::NormImage image(spec, threads, progress);
  results::GeometryDetails details;
  details.axes = results::longest_axes(image, axes, threads);
  if (null_space) details.null_space = results::null_space(image);
  if (has_gain) details.gain = analysis::statistics(spec.gain);
  return {json_text(results::geometry(spec, image, details)),
          json_text(figures::image_charts(image.semi_axes(), image.median()))};
}

Illustrated reach_document(const selectability::VocabularyHead& head, results::ReachDetails details,
                           const ReachSearch& search, unsigned threads, const Progress& progress) {
  for (const std::size_t token : search.tokens) {
    if (token >= head.logits.tokens) {
      throw Error(ErrorCode::Argument, fmt::format("reach: token {} is not among the {}, expected 0 to {}",
                                                   token, head.logits.tokens, head.logits.tokens - 1));
    }
  }
  details.tolerance = search.tolerance;
  const selectability::ReachOptions how{.threads = threads,
                                        .tolerance = details.tolerance,
                                        .progress = progress,
                                        .work = selectability::budget_unit * search.budget};
  selectability::Survey survey;
  selectability::decide(head.logits, survey.tokens, how);
  selectability::finish_survey(head.logits, survey,
                               {.nearest = search.nearest,
                                .probabilities = selectability::Probabilities::extremes,
                                .asked = search.tokens,
                                .probability_gap = 1e-3},
                               how);
  if (head.soft_cap > 0.0) selectability::cap_probabilities(head, survey, threads);
  return {json_text(results::reach(head, survey, details)), json_text(figures::reach_charts(survey))};
}

std::string verification_document(const verify::Result& result, const verify::Verification& found) {
  return json_text(results::verification(result.kind(), found));
}

}  // namespace normscope::python
