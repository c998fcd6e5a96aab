#include "results.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/core/deadline.hpp>
#include <normscope/core/error.hpp>
#include <normscope/documents/geometry.hpp>
#include <normscope/documents/text.hpp>
#include <normscope/documents/verification.hpp>
#include <normscope/geometry/image.hpp>
#include <normscope/selectability/survey.hpp>

namespace normscope::python {
namespace {

documents::Directions rows_of(std::size_t count, std::size_t width) {
  return {.values = std::vector<double>(count * width), .width = width};
}

}  // namespace

std::string geometry_document(const NormSpec& spec, bool has_gain, std::size_t axes, bool null_space,
                              unsigned threads, const Progress& progress) {
  const geometry::NormImage image(spec, threads, progress);
  documents::GeometryDetails details;
  details.axes = rows_of(std::min(axes, image.semi_axes().size()), spec.width);
  if (details.axes.size() > 0) image.axes(0, details.axes.view(), threads);
  if (null_space) {
    details.null_space = rows_of(image.null_space_dim(), spec.width);
    image.null_space(details.null_space->view());
  }
  if (has_gain) details.gain = audit::statistics(spec.gain);
  return json_text(documents::geometry(spec, image, details));
}

std::string reach_document(const audit::VocabularyHead& head, const documents::ReachDetails& details,
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
                                        .until = deadline_after(search.seconds)};
  selectability::Survey survey;
  selectability::decide(head.logits, survey.tokens, how);
  selectability::finish(head.logits, survey,
                        {.nearest = search.nearest,
                         .probabilities = selectability::Probabilities::extremes,
                         .asked = search.tokens,
                         .probability_gap = 1e-3},
                        how);
  if (head.soft_cap > 0.0) audit::cap_probabilities(head, survey, threads);
  return json_text(documents::reach(head, survey, details));
}

std::string verification_document(const certificates::Result& result,
                                  const certificates::Verification& found) {
  return json_text(documents::verification(result.kind(), found));
}

}  // namespace normscope::python
