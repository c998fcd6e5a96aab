#pragma once

#include <utility>
#include <vector>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {

/// A report with only heads of these extremes, most uniform and sharpest; a sharpest of 0 means refused.
inline Report report_of(const std::vector<std::pair<double, double>>& extremes) {
  Report report;
  report.path = "model.safetensors";
  report.norms.emplace_back();
  report.model.norms.emplace_back();
  for (std::size_t i = 0; i < extremes.size(); ++i) {
    const auto [uniform, sharp] = extremes[i];
    models::Head& head = report.model.heads.emplace_back();
    head.layer = static_cast<int>(i / 2);
    head.head = static_cast<int>(i % 2);
    heads::HeadReach reach{.refused = "the norm it reads is not known"};
    if (sharp > 0.0) {
      reach = {.attention = heads::Attention{.most_uniform = {.lower = uniform, .upper = uniform},
                                             .sharpest = {.lower = sharp, .upper = sharp}}};
    }
    reach.head = i;
    report.heads.push_back(reach);
  }
  return report;
}

/// The report of a model whose passes share weights: each head is listed twice, the first pass first.
inline Report report_of_passes() {
  Report report = report_of({{0.0, 5.0123}, {2.5, 300.25}});
  report.model.heads.pop_back();
  report.heads[0].pass = "first";
  report.heads[1].pass = "later";
  report.heads[1].head = 0;
  return report;
}

}  // namespace normscope::analysis
