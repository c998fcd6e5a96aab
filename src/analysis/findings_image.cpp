#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <normscope/analysis/report.hpp>
#include <normscope/analysis/text.hpp>

#include "finding_rules.hpp"
#include "gain_shape.hpp"
#include "median.hpp"

namespace normscope::analysis {
namespace {

/// How far a ratio is from 1, in either direction.
double distance_from_one(double ratio) {
  return ratio == 0.0 ? std::numeric_limits<double>::infinity() : std::abs(std::log(ratio));
}

}  // namespace

void add_gain_shape(std::span<const double> gain, NormReport& report) {
  std::vector<double> magnitudes;
  for (const double g : gain) {
    if (g != 0.0) magnitudes.push_back(std::abs(g));
  }
  if (magnitudes.empty()) return;
  for (const double magnitude : magnitudes) {
    ++report.gain_sizes[static_cast<int>(std::floor(gain_bins_per_octave * std::log2(magnitude)))];
  }
  const double typical = median(std::move(magnitudes));
  const std::size_t block = (gain.size() + most_gain_blocks - 1) / most_gain_blocks;
  for (std::size_t begin = 0; begin < gain.size(); begin += block) {
    GainBlock furthest{begin, std::min(begin + block, gain.size()), begin, 1.0};
    for (std::size_t i = begin; i < furthest.end; ++i) {
      const double ratio = std::abs(gain[i]) / typical;
      if (i > begin && distance_from_one(ratio) <= distance_from_one(furthest.ratio)) continue;
      furthest.coordinate = i;
      furthest.ratio = ratio;
    }
    report.gain_blocks.push_back(furthest);
  }
}

std::vector<std::size_t> thinned_ranks(std::size_t count, std::size_t points) {
  std::vector<std::size_t> ranks;
  if (count <= points) {
    for (std::size_t rank = 1; rank <= count; ++rank) ranks.push_back(rank);
    return ranks;
  }
  const double step = std::log(static_cast<double>(count)) / static_cast<double>(points - 1);
  for (std::size_t i = 0; i < points; ++i) {
    const auto rank = static_cast<std::size_t>(std::lround(std::exp(step * static_cast<double>(i))));
    if (ranks.empty() || rank > ranks.back()) ranks.push_back(std::min(rank, count));
  }
  return ranks;
}

namespace {

/// Cosine to all-ones below which a direction counts as tilted away from it.
constexpr double tilted_cosine = 0.5;
/// Ratio of the number of axes to the effective dimension from which an image counts as concentrated.
constexpr double concentrated = 1.5;

/// Condition number from which the range of condition numbers is a finding.
constexpr double ill_conditioned = 10.0;
/// Similarity below which a change of the image from a norm to the next is a finding.
constexpr double changed = 0.9;
/// Condition number from which an image differs from a sphere by more than rounding.
constexpr double stretched_at_all = 1.0 + 1e-9;
/// Indices of the norms for which `counts`, by descending `score`.
template <typename Counts, typename Score>
std::vector<std::size_t> ranked(const Report& report, Counts counts, Score score) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (counts(report.norms[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return score(report.norms[a]) > score(report.norms[b]);
  });
  return order;
}

/// Whether the image differs from a sphere.
bool more_than_a_sphere(const NormReport& norm) {
  return norm.image && norm.image->condition > stretched_at_all;
}

void stretched_axes(const Report& report, Findings& findings) {
  const auto ratio = [](const NormReport& norm) { return norm.image->top_axes[0].ratio_to_median; };
  const std::vector<std::size_t> order = ranked(report, more_than_a_sphere, ratio);
  if (order.empty()) return;
  const std::size_t stretched = std::count_if(
      order.begin(), order.end(), [&](std::size_t i) { return ratio(report.norms[i]) >= outlier_ratio; });
  for (std::size_t k = 0; k < std::min(stretched, named_per_rule); ++k) {
    const NormReport& norm = report.norms[order[k]];
    const Axis& axis = norm.image->top_axes[0];
    findings.push_back(
        {"stretched_axis",
         order[k],
         fmt::format("{} stretches one axis {} times the median: coordinate {} (weight {:.2f} of the axis).",
                     norm.norm.name, number(axis.ratio_to_median), axis.largest.coordinate,
                     std::abs(axis.largest.weight)),
         {{"ratio_to_median", axis.ratio_to_median},
          {"length", axis.length},
          {"coordinate", static_cast<double>(axis.largest.coordinate)},
          {"weight", axis.largest.weight}},
         0.3 + 0.6 * log_severity(axis.ratio_to_median, outlier_ratio, 50.0),
         norm.reproduce});
  }
  if (stretched > named_per_rule) {
    findings.push_back(
        {"stretched_axes_count",
         {},
         fmt::format("In {} of {} norms, some semi-axis is at least {:g} times the median one.", stretched,
                     report.norms.size(), outlier_ratio),
         {{"norms", static_cast<double>(stretched)}},
         0.3,
         report.norms[order[0]].reproduce});
  }
}

void concentrated_images(const Report& report, Findings& findings) {
  const auto concentration = [](const NormReport& norm) {
    return static_cast<double>(norm.image->semi_axes) / norm.image->effective_dimension;
  };
  const std::vector<std::size_t> order = ranked(report, more_than_a_sphere, concentration);
  if (order.empty()) return;
  const NormReport& norm = report.norms[order[0]];
  const double value = concentration(norm);
  if (value < concentrated) return;
  findings.push_back(
      {"concentrated_image",
       order[0],
       fmt::format("{} has the most concentrated image: effective dimension {} of {}; its longest axis holds "
                   "{} % of the energy, its eight longest {} %.",
                   norm.norm.name, number(norm.image->effective_dimension), norm.image->semi_axes,
                   number(100.0 * norm.image->energy_top_1), number(100.0 * norm.image->energy_top_8)),
       {{"effective_dimension", norm.image->effective_dimension},
        {"energy_top_1", norm.image->energy_top_1},
        {"energy_top_8", norm.image->energy_top_8}},
       0.2 + 0.6 * log_severity(value, concentrated, 50.0),
       norm.reproduce});
}

/// The condition number without the shortest axes, as many as features are switched off.
std::string without_switched_off(const NormReport& norm) {
  const std::size_t off = norm.switched_off.size();
  if (off == 0 || off >= norm.image->lengths.size()) return "";
  const double shortest = norm.image->lengths[norm.image->lengths.size() - 1 - off];
  return fmt::format(" {} switched off; without that many of its shortest axes, its condition number is {}.",
                     off == 1 ? "One feature is" : fmt::format("{} features are", off),
                     number(norm.image->longest / shortest));
}

void condition_through_depth(const Report& report, Findings& findings) {
  const std::vector<std::size_t> order =
      ranked(report, more_than_a_sphere, [](const NormReport& norm) { return norm.image->condition; });
  if (order.size() < 2) return;
  const NormReport& worst = report.norms[order.front()];
  const NormReport& best = report.norms[order.back()];
  if (worst.image->condition < ill_conditioned) return;
  findings.push_back(
      {"condition_range",
       order.front(),
       fmt::format("Condition numbers run from {} ({}) to {} ({}).{}", number(best.image->condition),
                   best.norm.name, number(worst.image->condition), worst.norm.name,
                   without_switched_off(worst)),
       {{"least", best.image->condition}, {"most", worst.image->condition}},
       0.1 + 0.5 * log_severity(worst.image->condition, ill_conditioned, 1e6),
       worst.reproduce});
}

void null_directions(const Report& report, Findings& findings) {
  std::optional<std::size_t> most;
  std::size_t tilted = 0;
  std::size_t single = 0;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const auto& space = report.norms[i].null_space;
    if (!space || !space->cosine_to_ones) continue;
    ++single;
    if (*space->cosine_to_ones < tilted_cosine) ++tilted;
    if (!most || *space->cosine_to_ones < *report.norms[*most].null_space->cosine_to_ones) most = i;
  }
  if (tilted == 0) return;
  const NormReport& norm = report.norms[*most];
  const double cosine = *norm.null_space->cosine_to_ones;
  const Component& top = norm.null_space->top[0];
  const bool off = std::any_of(norm.switched_off.begin(), norm.switched_off.end(),
                               [&](const Outlier& one) { return one.coordinate == top.coordinate; });
  findings.push_back(
      {"null_direction",
       *most,
       fmt::format("The output of {} does not vary along a direction far from all-ones (cosine {:.3f}), "
                   "mostly coordinate {} (weight {:.2f}){}. In {} of {} norms the cosine is below {:g}.",
                   norm.norm.name, cosine, top.coordinate, std::abs(top.weight),
                   off ? ", which the norm switches off" : "", tilted, single, tilted_cosine),
       {{"cosine_to_ones", cosine},
        {"coordinate", static_cast<double>(top.coordinate)},
        {"weight", top.weight}},
       0.3 + 0.4 * (tilted_cosine - cosine) / tilted_cosine,
       norm.reproduce + " --null-space"});
}

void changes_between_neighbours(const Report& report, Findings& findings) {
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const auto& next = report.norms[i].next;
    // The command that shows a similarity needs two stored gains.
    if (next && !(report.norms[i].norm.gain && report.norms[next->index].norm.gain)) continue;
    if (next && next->similarity < changed &&
        (!least || next->similarity < report.norms[*least].next->similarity))
      least = i;
  }
  if (!least) return;
  const NormReport& norm = report.norms[*least];
  findings.push_back(
      {"image_change",
       least,
       fmt::format("The image changes most from {} to {}: similarity {:.3f} (1 is the same shape).",
                   norm.norm.name, report.norms[norm.next->index].norm.name, norm.next->similarity),
       {{"similarity", norm.next->similarity}, {"top_axis_cosine", norm.next->top_axis_cosine}},
       0.1 + 0.4 * (1.0 - norm.next->similarity),
       norm.reproduce + " --similar-to " +
           shell_quoted(report.path + ":" + report.norms[norm.next->index].norm.gain->selector())});
}

void shifts(const Report& report, Findings& findings) {
  const auto shifted = [](const NormReport& norm) { return norm.shift_over_radius.has_value(); };
  const auto ratio = [](const NormReport& norm) { return *norm.shift_over_radius; };
  const std::vector<std::size_t> order = ranked(report, shifted, ratio);
  if (order.empty() || ratio(report.norms[order[0]]) < 0.5) return;
  const NormReport& norm = report.norms[order[0]];
  findings.push_back(
      {"large_bias",
       order[0],
       fmt::format(
           "{} shifts its image by {} times the image's own root-mean-square radius: what it outputs is {} "
           "one constant vector.",
           norm.norm.name, number(ratio(norm)), ratio(norm) >= 1.0 ? "mostly" : "in good part"),
       {{"shift_over_radius", ratio(norm)}},
       0.2 + 0.4 * log_severity(ratio(norm), 0.5, 5.0),
       norm.reproduce + " --bias " + shell_quoted(report.path + ":" + norm.norm.bias->selector())});
}

}  // namespace

void add_image_findings(const Report& report, Findings& findings) {
  stretched_axes(report, findings);
  concentrated_images(report, findings);
  condition_through_depth(report, findings);
  null_directions(report, findings);
  changes_between_neighbours(report, findings);
  shifts(report, findings);
}

}  // namespace normscope::analysis
