#include <normscope/analysis/causes.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {
namespace {

std::optional<double> of_norm(const NormReport& norm, Measure measure) {
  if (norm.norm.effect() != NormEffect::normalizes) return {};
  const double width = static_cast<double>(std::max<std::size_t>(1, norm.norm.width));
  switch (measure) {
    case Measure::largest_gain:
      if (norm.largest_gain) return norm.largest_gain->ratio_to_median;
      return {};
    case Measure::effective_dimension:
      if (!norm.image || norm.image->semi_axes == 0) return {};
      return norm.image->effective_dimension / static_cast<double>(norm.image->semi_axes);
    case Measure::null_direction: return norm.null_space ? norm.null_space->cosine_to_ones : std::nullopt;
    case Measure::switched_off:
      if (!norm.gain || norm.gain->not_finite > 0) return {};
      return static_cast<double>(norm.switched_off.size()) / width;
    case Measure::sign_changes:
      if (!norm.gain || norm.gain->not_finite > 0) return {};
      return static_cast<double>(norm.sign_changes) / width;
    case Measure::bias: return norm.shift_over_radius;
    case Measure::removed_weight: {
      std::optional<double> most;
      for (const Reader& reader : norm.readers) {
        if (reader.chance > 0.0) most = std::max(most.value_or(0.0), reader.removed);
      }
      return most;
    }
    default: return {};
  }
}

std::optional<double> of_head(const Report& report, std::size_t index, Measure measure) {
  const heads::HeadReach& head = report.heads[index];
  if (!report.model.is_known() || !head.attention || head.norm.empty()) return {};
  return measure == Measure::uniform_head ? head.attention->most_uniform.lower
                                          : head.attention->sharpest.upper;
}

}  // namespace

std::vector<MeasuredValue> measure(const Report& report, Measure which) {
  std::vector<MeasuredValue> result;
  const auto add = [&](std::size_t place, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) result.push_back({place, *value});
  };
  switch (which) {
    case Measure::unusual_coordinate:
      for (std::size_t i = 0; i < report.features.size(); ++i) {
        const UnusualFeature& feature = report.features[i];
        add(i, feature.unusual() < 2
                   ? 0.0
                   : static_cast<double>(feature.unusual()) / static_cast<double>(feature.norms.size()));
      }
      // A model of which no coordinate is unusual has the measure too.
      if (result.empty() && report.norms.size() > 1) add(0, 0.0);
      break;
    case Measure::uniform_head:
    case Measure::sharp_head:
      for (std::size_t i = 0; i < report.heads.size(); ++i) add(i, of_head(report, i, which));
      break;
    case Measure::image_change:
      for (const NormReport& norm : report.norms) {
        if (norm.next && norm.norm.gain && report.norms[norm.next->index].norm.gain) {
          add(norm.next->index, norm.next->similarity);
        }
      }
      break;
    default:
      for (std::size_t i = 0; i < report.norms.size(); ++i) add(i, of_norm(report.norms[i], which));
  }
  return result;
}

MeasuredValue most_unusual(const std::vector<MeasuredValue>& values, Measure measure) {
  const auto less = [](const MeasuredValue& a, const MeasuredValue& b) { return a.value < b.value; };
  return facts(measure).large ? *std::max_element(values.begin(), values.end(), less)
                              : *std::min_element(values.begin(), values.end(), less);
}

std::vector<const Reference*> references_for(const Report& report) {
  // A copy in another precision differs by its rounding; a measure that only one of the two has, as their
  // files hold different tensors, says nothing.
  constexpr double rounding = 2e-3;
  std::array<std::optional<double>, measures.size()> mine;
  for (const MeasureFacts& row : measures) {
    const std::vector<MeasuredValue> values = measure(report, row.measure);
    if (!values.empty())
      mine[static_cast<std::size_t>(row.measure)] = most_unusual(values, row.measure).value;
  }
  const auto is_same = [&](const Reference& reference) {
    if (report.norms.empty() || reference.norms != report.norms.size() ||
        reference.width != report.norms.front().norm.width) {
      return false;
    }
    for (std::size_t k = 0; k < measures.size(); ++k) {
      const double theirs = reference.extremes[k];
      if (!mine[k] || std::isnan(theirs)) continue;
      if (std::abs(*mine[k] - theirs) > rounding * std::max(1.0, std::abs(theirs))) return false;
    }
    return true;
  };
  std::vector<const Reference*> result;
  for (const Reference& reference : references()) {
    if (!is_same(reference)) result.push_back(&reference);
  }
  return result;
}

std::optional<Usual> usual_of(std::vector<double> extremes, Measure measure) {
  if (extremes.size() < least_references) return {};
  std::sort(extremes.begin(), extremes.end());
  if (!facts(measure).large) std::reverse(extremes.begin(), extremes.end());
  const double needed = std::ceil(usual_share * static_cast<double>(extremes.size()));
  Usual usual{.limit = extremes[static_cast<std::size_t>(needed) - 1], .of = extremes.size()};
  usual.within = static_cast<std::size_t>(std::count_if(extremes.begin(), extremes.end(), [&](double value) {
    return facts(measure).large ? value <= usual.limit : value >= usual.limit;
  }));
  return usual;
}

std::vector<ComparedMeasure> compare_measures(const Report& report) {
  const std::vector<const Reference*> others = references_for(report);
  std::vector<ComparedMeasure> result;
  for (const MeasureFacts& row : measures) {
    const std::vector<MeasuredValue> values = measure(report, row.measure);
    if (values.empty()) continue;
    ComparedMeasure compared{.measure = row.measure, .extreme = most_unusual(values, row.measure)};
    std::vector<double> theirs;
    for (const Reference* other : others) {
      const double value = other->extremes[static_cast<std::size_t>(row.measure)];
      if (!std::isnan(value)) theirs.push_back(value);
    }
    compared.usual = usual_of(std::move(theirs), row.measure);
    result.push_back(compared);
  }
  return result;
}

bool is_unusual(double value, Measure measure, const Usual& usual) {
  const MeasureFacts& row = facts(measure);
  return row.large ? value > usual.limit && value >= row.threshold
                   : value < usual.limit && value <= row.threshold;
}

}  // namespace normscope::analysis
