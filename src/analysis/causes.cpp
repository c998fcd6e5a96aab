#include <normscope/analysis/causes.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <normscope/analysis/report.hpp>
#include <normscope/models/model.hpp>

namespace normscope::analysis {
namespace {

/// What every unusual value beyond the first adds to the severity of their cause.
constexpr double for_another = 0.02;

/// A coordinate of a stream.
using Coordinate = std::tuple<std::string, std::size_t, std::size_t>;  // stack, width, coordinate

/// An unusual value and where it is.
struct Mark {
  UnusualValue value{};
  double severity = 0.0;
  std::optional<std::size_t> norm{};  ///< of a measure of norms
  std::optional<Coordinate> coordinate{};
};

/// From 0 at the limit towards the measure's weight far beyond it.
double severity_of(double value, const Usual& usual, const MeasureFacts& row) {
  const double a = std::abs(value) + row.resolution;
  const double b = std::abs(usual.limit) + row.resolution;
  const double beyond = row.large ? a / b : b / a;
  return row.weight * (1.0 - 1.0 / std::max(1.0, beyond));
}

/// Whether most of the squared length of a unit vector is that of its largest entry.
bool is_along(const Component& largest) { return largest.weight * largest.weight >= 0.5; }

/// The coordinate of the residual stream along which a norm is unusual.
std::optional<Coordinate> coordinate_of(const NormReport& norm, Measure measure) {
  // The coordinates of a norm inside attention are not those of the stream.
  if (norm.norm.placement == models::Placement::inside) return {};
  if (measure == Measure::largest_gain) {
    return Coordinate{norm.norm.stack, norm.norm.width, norm.largest_gain->coordinate};
  }
  if (measure != Measure::null_direction || norm.null_space->top.empty()) return {};
  const Component& largest = norm.null_space->top[0];
  if (!is_along(largest)) return {};
  return Coordinate{norm.norm.stack, norm.norm.width, largest.coordinate};
}

/// Every value beyond its limit, most severe first.
std::vector<Mark> unusual_values(const Report& report) {
  std::vector<Mark> marks;
  for (const ComparedMeasure& compared : report.measures) {
    if (!compared.usual) continue;
    const MeasureFacts& row = facts(compared.measure);
    for (const MeasuredValue& at : measure(report, row.measure)) {
      if (!is_unusual(at.value, row.measure, *compared.usual)) continue;
      Mark mark{.value = {row.measure, at, *compared.usual},
                .severity = severity_of(at.value, *compared.usual, row)};
      if (row.measure == Measure::unusual_coordinate) {
        const UnusualFeature& feature = report.features[at.place];
        mark.coordinate = {feature.stack, report.norms[feature.norms.front()].norm.width, feature.coordinate};
      } else if (row.measure != Measure::uniform_head && row.measure != Measure::sharp_head) {
        mark.norm = at.place;
        mark.coordinate = coordinate_of(report.norms[at.place], row.measure);
      }
      marks.push_back(std::move(mark));
    }
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.severity > b.severity; });
  return marks;
}

/// Appends the marks that `is_of` accepts to `cause`, one value a measure, and removes them from `marks`.
template <typename IsOf>
void gather(std::vector<Mark>& marks, Cause& cause, IsOf is_of) {
  std::set<std::size_t> norms(cause.norms.begin(), cause.norms.end());
  std::vector<Mark> others;
  for (Mark& mark : marks) {
    if (!is_of(mark)) {
      others.push_back(std::move(mark));
      continue;
    }
    if (mark.norm) norms.insert(*mark.norm);
    if (!cause.norm) cause.norm = mark.norm;
    const bool told = std::any_of(cause.values.begin(), cause.values.end(), [&](const UnusualValue& value) {
      return value.measure == mark.value.measure;
    });
    if (told) continue;
    cause.severity = cause.values.empty() ? mark.severity : std::min(1.0, cause.severity + for_another);
    cause.values.push_back(mark.value);
  }
  cause.norms.assign(norms.begin(), norms.end());
  marks = std::move(others);
}

/// Coordinates that are unusual in several norms.
void gather_coordinates(const Report& report, std::vector<Mark>& marks, std::vector<Cause>& causes) {
  std::map<Coordinate, std::set<std::size_t>> norms_of;
  for (const Mark& mark : marks) {
    if (!mark.coordinate) continue;
    std::set<std::size_t>& norms = norms_of[*mark.coordinate];
    if (mark.norm) norms.insert(*mark.norm);
    if (mark.value.measure != Measure::unusual_coordinate) continue;
    const UnusualFeature& feature = report.features[mark.value.at.place];
    norms.insert(feature.off.begin(), feature.off.end());
    norms.insert(feature.outliers.begin(), feature.outliers.end());
  }
  for (const auto& [key, norms] : norms_of) {
    if (norms.size() < 2) continue;
    const Coordinate& coordinate = key;
    Cause cause{.subject = Subject::coordinate,
                .coordinates = {std::get<2>(coordinate)},
                .norms = {norms.begin(), norms.end()}};
    gather(marks, cause, [&](const Mark& mark) { return mark.coordinate == coordinate; });
    if (!cause.norm) cause.norm = *norms.begin();
    causes.push_back(std::move(cause));
  }
}

/// The first norm that switches the coordinate of `cause` off, if more norms do than amplify it.
std::optional<std::size_t> norm_that_switches_off(const Report& report, const Cause& cause) {
  for (const UnusualFeature& feature : report.features) {
    if (feature.coordinate != cause.coordinates.front()) continue;
    if (std::find(feature.norms.begin(), feature.norms.end(), *cause.norm) == feature.norms.end()) continue;
    if (feature.off.size() > feature.outliers.size()) return feature.off.front();
  }
  return {};
}

/// Makes one cause of those about coordinates of one stream that are switched off.
void join_switched_off(const Report& report, std::vector<Cause>& causes) {
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.severity > b.severity; });
  std::vector<Cause> joined;
  for (Cause& cause : causes) {
    const std::optional<std::size_t> off = norm_that_switches_off(report, cause);
    cause.switched_off = off.has_value();
    if (off) cause.norm = *off;
    const models::Norm& norm = report.norms[*cause.norm].norm;
    const auto same = std::find_if(joined.begin(), joined.end(), [&](const Cause& other) {
      const models::Norm& one = report.norms[*other.norm].norm;
      return cause.switched_off && other.switched_off && one.stack == norm.stack && one.width == norm.width;
    });
    if (same == joined.end()) {
      joined.push_back(std::move(cause));
      continue;
    }
    same->coordinates.push_back(cause.coordinates.front());
    std::set<std::size_t> norms(same->norms.begin(), same->norms.end());
    norms.insert(cause.norms.begin(), cause.norms.end());
    same->norms.assign(norms.begin(), norms.end());
  }
  causes = std::move(joined);
}

/// The worst norm with all that is unusual about it, and the others whose worst value is of the same measure.
void gather_norms(std::vector<Mark>& marks, std::vector<Cause>& causes) {
  while (true) {
    const auto worst = std::find_if(marks.begin(), marks.end(), [](const Mark& mark) { return mark.norm; });
    if (worst == marks.end()) return;
    const Measure measure = worst->value.measure;
    const std::size_t norm = *worst->norm;
    Cause cause{.subject = Subject::norm};
    gather(marks, cause, [&](const Mark& mark) {
      return mark.norm == norm || (mark.norm && mark.value.measure == measure);
    });
    causes.push_back(std::move(cause));
  }
}

void gather_heads(const Report& report, std::vector<Mark>& marks, std::vector<Cause>& causes) {
  for (const Measure measure : {Measure::uniform_head, Measure::sharp_head}) {
    Cause cause{.subject = Subject::heads};
    for (const Mark& mark : marks) {
      if (mark.value.measure == measure) cause.heads.push_back(mark.value.at.place);
    }
    if (cause.heads.empty()) continue;
    std::sort(cause.heads.begin(), cause.heads.end());
    gather(marks, cause, [&](const Mark& mark) { return mark.value.measure == measure; });
    const std::string& name = report.heads[cause.values.front().at.place].norm;
    for (std::size_t i = 0; i < report.norms.size(); ++i) {
      if (report.norms[i].norm.name == name) cause.norm = i;
    }
    causes.push_back(std::move(cause));
  }
}

/// Whether a finding is unusual in any model.
template <typename Kind>
constexpr bool is_unusual_alone =
    std::is_same_v<Kind, NoNorms> || std::is_same_v<Kind, NormalizationOff> ||
    std::is_same_v<Kind, NotMeasured> || std::is_same_v<Kind, NotFinite> ||
    std::is_same_v<Kind, ImageOutOfRange> || std::is_same_v<Kind, BiasNotFinite> ||
    std::is_same_v<Kind, ZeroGain> || std::is_same_v<Kind, ConstantGain> || std::is_same_v<Kind, HugeEps> ||
    std::is_same_v<Kind, UnreachableTokens> || std::is_same_v<Kind, TiedTokens>;

/// The measure that a finding is about, if it is about one.
template <typename Kind>
constexpr std::optional<Measure> measure_of() {
  if constexpr (std::is_same_v<Kind, StretchedAxis>) return Measure::largest_gain;
  if constexpr (std::is_same_v<Kind, ConcentratedImage>) return Measure::effective_dimension;
  if constexpr (std::is_same_v<Kind, NullDirection>) return Measure::null_direction;
  if constexpr (std::is_same_v<Kind, SwitchedOff>) return Measure::switched_off;
  if constexpr (std::is_same_v<Kind, NegativeGain>) return Measure::sign_changes;
  if constexpr (std::is_same_v<Kind, LargeBias>) return Measure::bias;
  if constexpr (std::is_same_v<Kind, ImageChange>) return Measure::image_change;
  if constexpr (std::is_same_v<Kind, RemovedWeight>) return Measure::removed_weight;
  if constexpr (std::is_same_v<Kind, NeverUniform>) return Measure::uniform_head;
  if constexpr (std::is_same_v<Kind, NeverSharp>) return Measure::sharp_head;
  return {};
}

/// Whether `finding` is about what `cause` has gathered.
bool is_about(const Finding& finding, const Cause& cause) {
  return std::visit(
      [&](const auto& property) {
        using Kind = std::remove_cvref_t<decltype(property)>;
        if constexpr (std::is_same_v<Kind, SharedOutlier> || std::is_same_v<Kind, FeatureReader>) {
          return std::find(cause.coordinates.begin(), cause.coordinates.end(), property.coordinate) !=
                 cause.coordinates.end();
        }
        constexpr std::optional<Measure> measure = measure_of<Kind>();
        if (!measure) return false;
        const bool measured =
            std::any_of(cause.values.begin(), cause.values.end(),
                        [&](const UnusualValue& value) { return value.measure == *measure; });
        return measured &&
               (!finding.norm || std::binary_search(cause.norms.begin(), cause.norms.end(), *finding.norm) ||
                *measure == Measure::image_change);
      },
      finding.property);
}

}  // namespace

std::vector<Cause> find_causes(const Report& report) {
  std::vector<Mark> marks = unusual_values(report);
  std::vector<Cause> causes;
  gather_coordinates(report, marks, causes);
  join_switched_off(report, causes);
  gather_norms(marks, causes);
  gather_heads(report, marks, causes);
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const Finding& finding = report.findings[i];
    const bool alone = std::visit(
        [](const auto& property) { return is_unusual_alone<std::remove_cvref_t<decltype(property)>>; },
        finding.property);
    if (alone) {
      Cause cause{.subject = Subject::finding, .severity = finding.severity, .norm = finding.norm};
      if (finding.norm) cause.norms = {*finding.norm};
      cause.findings = {i};
      causes.push_back(std::move(cause));
      continue;
    }
    for (Cause& cause : causes) {
      if (is_about(finding, cause)) cause.findings.push_back(i);
    }
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.severity > b.severity; });
  return causes;
}

}  // namespace normscope::analysis
