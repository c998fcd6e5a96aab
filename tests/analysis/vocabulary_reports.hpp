#pragma once

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {

/// A report with nothing but a vocabulary of four tokens, the last of which has this answer and bound.
inline Report report_of(proof::Answer last, double probability) {
  Report report;
  report.path = "model.safetensors";
  selectability::Survey survey;
  for (std::size_t i = 0; i < 4; ++i) {
    const bool is_last = i == 3;
    survey.tokens.push_back({.done = true,
                             .answer = is_last ? last : proof::Answer::yes,
                             .unbounded = proof::Answer::yes,
                             .lower = 1.0,
                             .upper = 2.0});
    survey.probabilities.push_back({0.0, is_last ? probability : 0.9});
  }
  report.vocabulary.survey = survey;
  report.vocabulary.names = {"a", "b", "c", "the"};
  return report;
}

}  // namespace normscope::analysis
