#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include <normscope/audit/report.hpp>

#include "text.hpp"

namespace normscope::audit {
namespace {

/// A rule lists at most this many norms of its kind by name; the counts speak for the rest.
constexpr std::size_t named_per_rule = 3;

/// "h.7.ln_2", with its block where the name alone does not tell.
const std::string& name_of(const NormReport& report) { return report.norm.name; }

/// Between 0 at `low` and 1 at `high`, by the logarithm.
double log_severity(double value, double low, double high) {
  return std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0);
}

/// Indices of the norms with an image of some extent, by falling `score`.
template <typename Score>
std::vector<std::size_t> ranked(const Report& report, Score score) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (report.norms[i].image && report.norms[i].image->semi_axes > 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return score(report.norms[a]) > score(report.norms[b]);
  });
  return order;
}

void stretched_axes(const Report& report, std::vector<Finding>& findings) {
  const auto ratio = [](const NormReport& norm) { return norm.image->top_axes[0].ratio_to_median; };
  const std::vector<std::size_t> order = ranked(report, ratio);
  const std::size_t stretched = std::count_if(
      order.begin(), order.end(), [&](std::size_t i) { return ratio(report.norms[i]) >= outlier_ratio; });
  for (std::size_t k = 0; k < std::min(stretched, named_per_rule); ++k) {
    const NormReport& norm = report.norms[order[k]];
    const Axis& axis = norm.image->top_axes[0];
    findings.push_back(
        {"stretched_axis",
         order[k],
         fmt::format("{} stretches one axis {} times the median: coordinate {} (weight {:.2f} of the axis).",
                     name_of(norm), number(axis.ratio_to_median), axis.largest.coordinate,
                     std::abs(axis.largest.weight)),
         {{"ratio_to_median", axis.ratio_to_median},
          {"length", axis.length},
          {"coordinate", static_cast<double>(axis.largest.coordinate)},
          {"weight", axis.largest.weight}},
         0.3 + 0.6 * log_severity(axis.ratio_to_median, outlier_ratio, 50.0),
         norm.reproduce});
  }
  if (stretched > named_per_rule) {
    findings.push_back({"stretched_axes_count",
                        {},
                        fmt::format("{} of {} norms stretch some axis at least {:g} times their median.",
                                    stretched, report.norms.size(), outlier_ratio),
                        {{"norms", static_cast<double>(stretched)}},
                        0.3});
  }
}

void shared_outliers(const Report& report, std::vector<Finding>& findings) {
  std::map<std::size_t, std::vector<std::size_t>> norms_by_coordinate;
  std::size_t with_gain = 0;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (report.norms[i].norm.placement == model::Placement::inside || !report.norms[i].gain) continue;
    ++with_gain;
    for (const Outlier& outlier : report.norms[i].outliers)
      norms_by_coordinate[outlier.coordinate].push_back(i);
  }
  std::vector<std::pair<std::size_t, std::size_t>> shared;  // (norms, coordinate)
  for (const auto& [coordinate, norms] : norms_by_coordinate) {
    if (norms.size() >= 3 && 8 * norms.size() >= with_gain) shared.emplace_back(norms.size(), coordinate);
  }
  std::sort(shared.rbegin(), shared.rend());
  for (std::size_t k = 0; k < std::min(shared.size(), named_per_rule); ++k) {
    const auto [count, coordinate] = shared[k];
    const std::size_t first = norms_by_coordinate[coordinate].front();
    findings.push_back(
        {"shared_outlier",
         first,
         fmt::format("Coordinate {} has an outlier gain in {} of {} norms, from {} to {}.", coordinate, count,
                     with_gain, name_of(report.norms[first]),
                     name_of(report.norms[norms_by_coordinate[coordinate].back()])),
         {{"coordinate", static_cast<double>(coordinate)}, {"norms", static_cast<double>(count)}},
         0.4 + 0.5 * static_cast<double>(count) / static_cast<double>(with_gain),
         report.norms[first].reproduce});
  }
}

void collapsed_images(const Report& report, std::vector<Finding>& findings) {
  const auto concentration = [](const NormReport& norm) {
    return static_cast<double>(norm.image->semi_axes) / norm.image->effective_dimension;
  };
  const std::vector<std::size_t> order = ranked(report, concentration);
  if (order.empty()) return;
  const NormReport& norm = report.norms[order[0]];
  const double value = concentration(norm);
  if (value < 1.5) return;
  findings.push_back(
      {"concentrated_image",
       order[0],
       fmt::format("{} has the most concentrated image: effective dimension {} of {}; its longest axis holds "
                   "{:.1f}% of the energy, its eight longest {:.1f}%.",
                   name_of(norm), number(norm.image->effective_dimension), norm.image->semi_axes,
                   100.0 * norm.image->energy_top_1, 100.0 * norm.image->energy_top_8),
       {{"effective_dimension", norm.image->effective_dimension},
        {"energy_top_1", norm.image->energy_top_1},
        {"energy_top_8", norm.image->energy_top_8}},
       0.2 + 0.6 * log_severity(value, 1.5, 50.0),
       norm.reproduce});
}

void condition_through_depth(const Report& report, std::vector<Finding>& findings) {
  const std::vector<std::size_t> order =
      ranked(report, [](const NormReport& norm) { return norm.image->condition; });
  if (order.size() < 2) return;
  const NormReport& worst = report.norms[order.front()];
  const NormReport& best = report.norms[order.back()];
  findings.push_back(
      {"condition_range",
       order.front(),
       fmt::format("Condition numbers run from {} ({}) to {} ({}).", number(best.image->condition),
                   name_of(best), number(worst.image->condition), name_of(worst)),
       {{"least", best.image->condition}, {"most", worst.image->condition}},
       0.1 + 0.5 * log_severity(std::max(1.0, worst.image->condition), 10.0, 1e6),
       worst.reproduce});
}

void tilted_null_directions(const Report& report, std::vector<Finding>& findings) {
  std::optional<std::size_t> most;
  std::size_t tilted = 0;
  std::size_t single = 0;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const auto& space = report.norms[i].null_space;
    if (!space || !space->cosine_to_ones) continue;
    ++single;
    if (*space->cosine_to_ones < 0.5) ++tilted;
    if (!most || *space->cosine_to_ones < *report.norms[*most].null_space->cosine_to_ones) most = i;
  }
  if (!most) return;
  const NormReport& norm = report.norms[*most];
  const double cosine = *norm.null_space->cosine_to_ones;
  if (cosine >= 0.5) return;
  const Component& top = norm.null_space->top[0];
  findings.push_back(
      {"tilted_null_direction",
       *most,
       fmt::format(
           "After its gain, {} erases a direction far from all-ones (cosine {:.3f}): mostly coordinate {} "
           "(weight {:.2f}). {} of {} norms are tilted like this, below cosine 0.5.",
           name_of(norm), cosine, top.coordinate, std::abs(top.weight), tilted, single),
       {{"cosine_to_ones", cosine},
        {"coordinate", static_cast<double>(top.coordinate)},
        {"weight", top.weight}},
       0.3 + 0.4 * (0.5 - cosine) / 0.5,
       norm.reproduce});
}

void muted_and_negative_gains(const Report& report, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const NormReport& norm = report.norms[i];
    if (norm.gain && norm.gain->zero > 0) {
      findings.push_back({"zero_gain",
                          i,
                          fmt::format("{} erases {} outright: gain exactly zero.", name_of(norm),
                                      counted(norm.gain->zero, "coordinate")),
                          {{"zero", static_cast<double>(norm.gain->zero)}},
                          0.8,
                          norm.reproduce});
    }
  }
  std::size_t negative = 0;
  std::optional<std::size_t> most;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (!report.norms[i].gain || report.norms[i].gain->negative == 0) continue;
    negative += report.norms[i].gain->negative;
    if (!most || report.norms[i].gain->negative > report.norms[*most].gain->negative) most = i;
  }
  if (!most) return;
  const NormReport& norm = report.norms[*most];
  findings.push_back({"negative_gain",
                      *most,
                      fmt::format("Features change sign at {} below zero; {} has the most, {}.",
                                  counted(negative, "gain"), name_of(norm), norm.gain->negative),
                      {{"negative", static_cast<double>(negative)}},
                      0.25,
                      norm.reproduce});
}

void large_biases(const Report& report, std::vector<Finding>& findings) {
  const auto ratio = [](const NormReport& norm) {
    return norm.bias && norm.image->energy > 0.0 ? norm.bias->length / std::sqrt(norm.image->energy) : 0.0;
  };
  const std::vector<std::size_t> order = ranked(report, ratio);
  if (order.empty() || ratio(report.norms[order[0]]) < 0.5) return;
  const NormReport& norm = report.norms[order[0]];
  findings.push_back(
      {"large_bias",
       order[0],
       fmt::format("{} shifts its image by {} times the image's own root-mean-square radius: what it "
                   "outputs is {} one constant vector.",
                   name_of(norm), number(ratio(norm)), ratio(norm) >= 1.0 ? "mostly" : "in good part"),
       {{"shift_over_radius", ratio(norm)}},
       0.2 + 0.4 * log_severity(ratio(norm), 0.5, 5.0),
       norm.reproduce});
}

void changes_between_neighbours(const Report& report, std::vector<Finding>& findings) {
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const auto& next = report.norms[i].next;
    if (next && (!least || next->similarity < report.norms[*least].next->similarity)) least = i;
  }
  if (!least) return;
  const NormReport& norm = report.norms[*least];
  const NormReport& next = report.norms[norm.next->index];
  findings.push_back(
      {"image_change",
       least,
       fmt::format("The image changes most from {} to {}: similarity {:.3f} (1 is the same shape).",
                   name_of(norm), name_of(next), norm.next->similarity),
       {{"similarity", norm.next->similarity}, {"top_axis_cosine", norm.next->top_axis_cosine}},
       0.1 + 0.4 * (1.0 - norm.next->similarity),
       norm.reproduce});
}

void unusual_parameters(const Report& report, std::vector<Finding>& findings) {
  std::size_t offset = 0;
  std::set<std::string> assumed;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const NormReport& norm = report.norms[i];
    if (norm.gain && norm.gain->not_finite > 0) {
      findings.push_back({"not_finite",
                          i,
                          fmt::format("{} has {} without a finite value, and so no image.", name_of(norm),
                                      counted(norm.gain->not_finite, "gain")),
                          {{"not_finite", static_cast<double>(norm.gain->not_finite)}},
                          1.0});
    }
    if (norm.gain && norm.gain->not_finite == 0 && norm.norm.width > 1 && norm.gain->std == 0.0) {
      findings.push_back({"constant_gain",
                          i,
                          fmt::format("{} has all gains equal to {:g}, as an untrained or a folded norm has.",
                                      name_of(norm), norm.gain->mean),
                          {{"gain", norm.gain->mean}},
                          0.5,
                          norm.reproduce});
    }
    // A norm with a huge eps divides by a constant: it is there in name only.
    if (norm.norm.eps >= 1.0) {
      findings.push_back(
          {"huge_eps",
           i,
           fmt::format("{} has eps {:g}: it divides by nearly a constant and hardly normalizes.",
                       name_of(norm), norm.norm.eps),
           {{"eps", norm.norm.eps}},
           0.9,
           norm.reproduce});
    }
    offset += norm.norm.gain_offset != 0.0 ? 1 : 0;
    if (norm.norm.eps_source == model::Source::assumed) assumed.insert(fmt::format("{:g}", norm.norm.eps));
  }
  if (offset > 0) {
    findings.push_back(
        {"gain_offset",
         {},
         fmt::format("{} of {} norms store gain − 1; every number here is of the gain as used, 1 added.",
                     offset, report.norms.size()),
         {{"norms", static_cast<double>(offset)}},
         0.6});
  }
  if (!assumed.empty()) {
    findings.push_back(
        {"assumed_eps",
         {},
         fmt::format("No file says eps; {} was assumed, which changes no axis and no null direction.",
                     fmt::join(assumed, " or ")),
         {},
         0.15});
  }
  if (!report.model.missing.empty()) {
    findings.push_back(
        {"missing_tensors",
         {},
         fmt::format("The file lacks {} that {} has, the first {}: what they read and write is "
                     "left out.",
                     counted(report.model.missing.size(), "tensor"), report.model.title,
                     report.model.missing.front()),
         {{"missing", static_cast<double>(report.model.missing.size())}},
         0.5});
  }
}

}  // namespace

std::vector<Finding> find(const Report& report) {
  if (report.norms.empty()) {
    return {{"no_norms", {}, "No tensor here looks like the gain of a normalization layer.", {}, 0.5}};
  }
  std::vector<Finding> findings;
  stretched_axes(report, findings);
  shared_outliers(report, findings);
  collapsed_images(report, findings);
  condition_through_depth(report, findings);
  tilted_null_directions(report, findings);
  muted_and_negative_gains(report, findings);
  large_biases(report, findings);
  changes_between_neighbours(report, findings);
  unusual_parameters(report, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace normscope::audit
