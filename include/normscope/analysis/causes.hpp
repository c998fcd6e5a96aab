#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/analysis/findings.hpp>

/// What is unusual in a report, beside what named models show: measures of norms, coordinates and heads, and
/// their unusual values gathered by what they have in common.
namespace normscope::analysis {

struct Report;

/// What is compared with other models. Each has one unusual side.
enum class Measure {
  largest_gain,         ///< of a norm: |gain| over its median where it is largest
  effective_dimension,  ///< of a norm: effective dimension over the number of semi-axes
  null_direction,       ///< of a norm: |cosine| between the direction it removes and all-ones
  switched_off,         ///< of a norm: share of its features that it switches off
  sign_changes,         ///< of a norm: share of its features whose sign it changes
  bias,                 ///< of a norm: length of the bias over the root-mean-square radius of the image
  image_change,         ///< of a norm: similarity of its image to that of the norm before it
  removed_weight,       ///< of a norm: largest share of a reader's squared weights that it removes
  unusual_coordinate,   ///< of a coordinate: share of the norms that switch it off or amplify it; 0 for one
                        ///< norm
  uniform_head,         ///< of a head: proved least spread of its scores, in nats
  sharp_head,           ///< of a head: proved largest spread of its scores, in nats
};

struct MeasureFacts {
  Measure measure{};
  std::string_view name{};           ///< "largest_gain"
  bool large = true;                 ///< whether large values are the unusual ones
  std::optional<double> ordinary{};  ///< the value that is furthest from unusual, if there is one
  double threshold = 0.0;            ///< no value short of it counts as unusual, whatever other models have
  double resolution = 0.0;           ///< differences below it do not count, so that ratios to 0 exist
  double weight = 1.0;               ///< how much an unusual value matters, from 0 to 1
};

inline constexpr std::array<MeasureFacts, 11> measures{{
    {Measure::largest_gain, "largest_gain", true, 1.0, outlier_ratio, 0.0, 1.0},
    {Measure::effective_dimension, "effective_dimension", false, 1.0, 1.0 / concentrated_from, 0.01, 0.7},
    {Measure::null_direction, "null_direction", false, 1.0, tilted_cosine, 0.01, 0.6},
    {Measure::switched_off, "switched_off", true, 0.0, 0.0, 0.01, 0.6},
    {Measure::sign_changes, "sign_changes", true, 0.0, 0.0, 0.01, 0.4},
    {Measure::bias, "bias", true, 0.0, long_bias, 0.05, 0.7},
    {Measure::image_change, "image_change", false, 1.0, changed_similarity, 0.05, 0.3},
    {Measure::removed_weight, "removed_weight", true, 0.0, much_removed, 0.01, 0.4},
    {Measure::unusual_coordinate, "unusual_coordinate", true, 0.0, 0.0, 0.05, 0.9},
    {Measure::uniform_head, "uniform_head", true, 0.0, never_uniform_from, 0.5, 0.8},
    {Measure::sharp_head, "sharp_head", false, std::nullopt, singling_out, 1.0, 0.6},
}};

[[nodiscard]] constexpr const MeasureFacts& facts(Measure measure) {
  return measures[static_cast<std::size_t>(measure)];
}
[[nodiscard]] constexpr std::string_view to_string(Measure measure) { return facts(measure).name; }

/// A value of a measure.
struct MeasuredValue {
  std::size_t place = 0;  ///< index into `norms`, `features` or `heads` of the report, by the measure
  double value = 0.0;
};

/// The values of a measure in a report, in the order of its places. Norms that do not normalize, and heads of
/// models that are not recognized, have none.
[[nodiscard]] std::vector<MeasuredValue> measure(const Report& report, Measure measure);

/// The least or largest of `values`, whichever is unusual.
///
/// Requires  values are not empty
[[nodiscard]] MeasuredValue most_unusual(const std::vector<MeasuredValue>& values, Measure measure);

/// A published model whose measures others are compared with.
struct Reference {
  std::string_view name{};
  std::size_t norms = 0;
  std::size_t width = 0;  ///< of its first norm
  /// The most unusual value of each measure in it; NaN where it has none.
  std::array<double, measures.size()> extremes{};
};

/// All reference models, by name. Written by `scripts/references`.
[[nodiscard]] const std::vector<Reference>& references();

/// The reference models that a report is compared with: those that are not the same model.
[[nodiscard]] std::vector<const Reference*> references_for(const Report& report);

/// Reference models that a limit needs at least.
inline constexpr std::size_t least_references = 4;
/// The share of the reference models, at least, that stay within a limit in all their norms or heads.
inline constexpr double usual_share = 0.8;

/// Up to (or, where small values are unusual, down to) where values of a measure are usual.
struct Usual {
  double limit = 0.0;
  std::size_t within = 0;  ///< reference models of which every norm or head is within the limit
  std::size_t of = 0;      ///< reference models that have the measure
};

/// What is usual where models have these extremes; empty for fewer than `least_references`.
[[nodiscard]] std::optional<Usual> usual_of(std::vector<double> extremes, Measure measure);

/// A measure of a report beside that of the reference models.
struct ComparedMeasure {
  Measure measure{};
  MeasuredValue extreme{};
  std::optional<Usual> usual{};  ///< absent for fewer than `least_references` models
};

/// The measures that a report has values of, compared.
[[nodiscard]] std::vector<ComparedMeasure> compare_measures(const Report& report);

/// Whether a value is beyond the limit, and beyond the measure's threshold or at it. Numbers are compared as
/// they are, before any rounding for print.
[[nodiscard]] bool is_unusual(double value, Measure measure, const Usual& usual);

/// An unusual value and the limit it exceeds.
struct UnusualValue {
  Measure measure{};
  MeasuredValue at{};
  Usual usual{};
};

/// What reads a coordinate behind norms, by its share of squared weights with the gain folded in.
struct CoordinateReader {
  std::size_t norm = 0;  ///< index into `norms`
  std::optional<std::size_t>
      head{};          ///< index into the heads of the model: its query, key and value together
  std::string role{};  ///< of another linear map, "mlp in"
  double share = 0.0;
  double over_mean = 0.0;  ///< that share over the mean of all coordinates
};

/// What unusual values have in common.
enum class Subject { coordinate, norm, heads, finding };

/// Unusual values that have one cause: a coordinate in several norms, one norm and others like it, heads, or
/// a finding that no comparison is needed for.
struct Cause {
  Subject subject{};
  double severity = 0.0;  ///< from 0 to 1: how far beyond what is usual, and how much it matters
  std::vector<std::size_t> coordinates{};  ///< most unusual first; several if norms switch them off
  bool switched_off = false;            ///< whether norms switch the coordinates off and do not amplify them
  std::optional<std::size_t> norm{};    ///< where it is most unusual
  std::vector<std::size_t> norms{};     ///< all that are concerned, in order
  std::vector<std::size_t> heads{};     ///< entries of `Report::heads` that are concerned
  std::vector<UnusualValue> values{};   ///< most unusual first; none of a finding
  std::vector<std::size_t> findings{};  ///< those about the same
  std::vector<MeasuredValue> ratios{};  ///< of the first coordinate: |gain| over the median, by norm
  std::vector<CoordinateReader> readers{};  ///< of the first coordinate: what reads it most
};

/// Causes that a report begins with; the others follow in its appendix.
inline constexpr std::size_t first_causes = 4;

/// The causes of a report with its `features`, `heads` and `findings`, most severe first, as yet without
/// `ratios` and `readers`.
[[nodiscard]] std::vector<Cause> find_causes(const Report& report);

}  // namespace normscope::analysis
