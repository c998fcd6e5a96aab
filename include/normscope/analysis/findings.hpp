#pragma once

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include <normscope/analysis/gain_consistency.hpp>
#include <normscope/models/model.hpp>

/// What is remarkable in a report, as values: one struct for each kind of finding, with its numbers. The
/// sentences about them are `results::describe`.
///
/// Units     ratios, shares and cosines are plain numbers; gains, biases and lengths of axes are those of a
///           norm's output; score spreads are differences of attention scores after their scale, in nats
namespace normscope::analysis {

struct Report;

/// A gain is an outlier from this many times its norm's median on.
inline constexpr double outlier_ratio = 4.0;
/// A gain of at most this many times its norm's median switches its feature off.
inline constexpr double off_ratio = 0.02;
/// Ratio of the number of axes to the effective dimension from which an image counts as concentrated.
inline constexpr double concentrated_from = 1.5;
/// Similarity of images below which the change from a norm to the next is a finding.
inline constexpr double changed_similarity = 0.9;
/// Length of a bias, in radii of the image, from which it is a finding.
inline constexpr double long_bias = 0.5;
/// Share of a reader's squared weights from which its removal is a finding.
inline constexpr double much_removed = 0.05;
/// Least spread of scores, in nats, from which a head counts as never uniform.
inline constexpr double never_uniform_from = 1.0;
/// |cosine| to all-ones below which a norm's null direction counts as tilted.
inline constexpr double tilted_cosine = 0.5;
/// Spread of scores from which one of 1024 keys can get half of a softmax: ln 1023.
inline constexpr double singling_out = 6.930495165951;

/// An entry of a unit vector.
struct Component {
  std::size_t coordinate = 0;
  double weight = 0.0;
};

/// No norm was found, or none of a kind that is analysed.
struct NoNorms {};

/// The longest axis of the norm's image is far longer than the median one.
struct StretchedAxis {
  double ratio_to_median = 0.0;
  double length = 0.0;
  Component largest{};  ///< of the axis
};

/// More norms have stretched axes than have findings of their own.
struct StretchedAxesCount {
  std::size_t norms = 0;  ///< how many
  std::size_t most = 0;   ///< index of the one with the largest ratio
};

/// Few axes hold most of the image's energy, the sum of its squared semi-axes.
struct ConcentratedImage {
  double effective_dimension = 0.0;
  double energy_top_1 = 0.0, energy_top_8 = 0.0;  ///< shares of the longest axes
};

/// The norm has the largest condition number of all.
struct ConditionRange {
  double most = 0.0;
  double least = 0.0;
  std::size_t least_norm = 0;
  std::size_t switched_off = 0;  ///< features that the norm switches off
  /// The condition number without that many of its shortest axes; absent if no feature or every axis is off.
  std::optional<double> without_switched_off{};
};

/// The direction that the norm removes is far from all-ones.
struct NullDirection {
  double cosine_to_ones = 0.0;  ///< absolute
  Component largest{};          ///< of the direction
  bool switched_off = false;    ///< whether the norm switches that coordinate off
  std::size_t tilted = 0;       ///< norms whose cosine is below `tilted_cosine`
  std::size_t norms = 0;        ///< norms that remove one direction
};

/// The norm's image and that of the next norm of its stream differ most.
struct ImageChange {
  std::size_t next = 0;  ///< index into `norms`
  double similarity = 0.0;
  double top_axis_cosine = 0.0;  ///< absolute
};

/// The bias is long beside the image.
struct LargeBias {
  double shift_over_radius = 0.0;  ///< its length over the root-mean-square radius of the image
};

/// Eps exceeds the mean square of any row, so that nothing is normalized.
struct NormalizationOff {
  std::vector<std::size_t> norms{};
  double eps = 0.0;  ///< of the first
};

/// The norm acts on every feature separately.
struct ElementwiseNorm {
  std::vector<std::size_t> norms{};
};

/// A feature has an outlier gain in many norms of the residual stream.
struct SharedOutlier {
  std::size_t coordinate = 0;
  std::vector<std::size_t> norms{};  ///< those with an outlier gain
  std::size_t of_norms = 0;          ///< norms of the stream that have a gain
};

/// A feature that several norms switch off.
struct RecurringFeature {
  std::size_t coordinate = 0;
  std::size_t off = 0;    ///< norms that switch it off
  std::size_t norms = 0;  ///< norms of its stream
};

/// Gains near zero switch features off.
struct SwitchedOff {
  std::size_t gains = 0;             ///< in all norms
  std::size_t norms = 0;             ///< norms with such gains
  std::size_t of_norms = 0;          ///< norms that have a gain
  std::size_t first_coordinate = 0;  ///< in the first of them
  std::optional<RecurringFeature> recurring{};
};

/// The typical gain of norms on the residual stream differs; the norm has the largest.
struct GainRange {
  double most = 0.0, least = 0.0;  ///< medians of absolute values
  std::size_t least_norm = 0;
};

/// Gains are exactly zero.
struct ZeroGain {
  std::vector<std::size_t> norms{};
  std::size_t gains = 0;  ///< in the first
};

/// Negative gains change the sign of features; the norm has most of them.
struct NegativeGain {
  std::size_t gains = 0;  ///< in all norms
  std::size_t most = 0;   ///< in this norm
  std::size_t norms = 0;  ///< norms with such gains
};

/// Tensors of norms cannot be read.
struct NotMeasured {
  std::vector<std::size_t> norms{};
};

/// Gains are infinite or not a number.
struct NotFinite {
  std::vector<std::size_t> norms{};
  std::size_t gains = 0;  ///< in the first
};

/// The semi-axes leave the range of float64.
struct ImageOutOfRange {
  std::vector<std::size_t> norms{};
  double largest = 0.0;  ///< gain of the first, absolute
};

/// Biases are infinite or not a number.
struct BiasNotFinite {
  std::vector<std::size_t> norms{};
  std::size_t entries = 0;  ///< in the first
};

/// All gains of a norm are equal.
struct ConstantGain {
  std::vector<std::size_t> norms{};
  double gain = 0.0;  ///< of the first
};

/// Eps is 1 or more.
struct HugeEps {
  std::vector<std::size_t> norms{};
  double eps = 0.0;  ///< of the first
};

/// The file stores gains less a constant that the model adds.
struct GainOffset {
  std::vector<std::size_t> norms{};
  double offset = 0.0;  ///< of the first
};

/// What the entries of gains tell about their convention, of norms whose class stores the gain minus 1.
struct GainConvention {
  /// `as_expected`: 1 was not added once more than the file's form says. `looks_shifted`: evidence that it
  /// was. `not_shifted`: 1 was not added though the file's form says so, unless in a wider type.
  enum class Kind { as_expected, looks_shifted, not_shifted };

  std::vector<std::size_t> norms{};
  Kind kind = Kind::as_expected;
  models::GainShifts shifts{};  ///< of the first
  std::size_t undecided = 0;    ///< norms of which no entry tells
};

/// What the model makes of a text with its gains as described and off by 1: decided, or undecided for a class
/// that stores the gain minus 1.
struct GainsOnText {
  GainConsistency found{};
};

/// No file states eps.
struct AssumedEps {
  std::vector<double> eps{};  ///< the values assumed, ascending
};

/// Tensors of the architecture are not in the file.
struct MissingTensors {
  std::size_t tensors = 0;
};

/// Much of a reader's weights lies along directions that the norm removes.
struct RemovedWeight {
  std::size_t reader = 0;              ///< index into the readers of the norm's model
  double removed = 0.0, chance = 0.0;  ///< shares of its squared weights: found, and expected of random ones
};

/// The reader that uses the feature which is unusual in most norms.
struct FeatureReader {
  std::size_t coordinate = 0;
  std::size_t unusual = 0;  ///< norms that switch it off or give it an outlier gain
  std::size_t norms = 0;    ///< norms of its stream
  std::size_t reader = 0;   ///< index into the readers of the norm's model
  double share = 0.0;       ///< of the reader's squared weights times gains
  double over_mean = 0.0;   ///< that share over the mean of all coordinates
};

/// Heads that weight some keys more than others in every context.
struct NeverUniform {
  std::vector<std::size_t> heads{};  ///< indices into `Report::heads`, one for each norm that a head reads
  std::size_t different = 0;         ///< heads of the model among them
  std::size_t extreme = 0;           ///< index into `Report::heads` of the one with the largest spread
  double spread = 0.0;               ///< its proved least spread of scores
};

/// Heads that cannot give one of 1024 keys half of their attention.
struct NeverSharp {
  std::vector<std::size_t> heads{};  ///< indices into `Report::heads`, one for each norm that a head reads
  std::size_t different = 0;         ///< heads of the model among them
  std::size_t known = 0;             ///< heads of the model that are bounded
  std::size_t extreme = 0;           ///< index into `Report::heads` of the one with the smallest spread
  double spread = 0.0;               ///< its proved largest spread of scores
};

/// Tokens that never have the largest logit.
struct UnreachableTokens {
  std::vector<std::size_t> tokens{};
  std::size_t without_bound = 0;  ///< those that never have it for hidden states of any length either
};

/// Tokens with the weights of another token.
struct TiedTokens {
  std::size_t tokens = 0;
  std::size_t groups = 0;  ///< of tokens with the same weights, `VocabularyReach::ties`
};

/// A token whose largest probability over all contexts is small.
struct ImprobableToken {
  std::size_t token = 0;
  double probability = 0.0;  ///< a proved upper bound
};

using Property =
    std::variant<NoNorms, StretchedAxis, StretchedAxesCount, ConcentratedImage, ConditionRange, NullDirection,
                 ImageChange, LargeBias, NormalizationOff, ElementwiseNorm, SharedOutlier, SwitchedOff,
                 GainRange, ZeroGain, NegativeGain, NotMeasured, NotFinite, ImageOutOfRange, BiasNotFinite,
                 ConstantGain, HugeEps, GainOffset, GainConvention, GainsOnText, AssumedEps, MissingTensors,
                 RemovedWeight, FeatureReader, NeverUniform, NeverSharp, UnreachableTokens, TiedTokens,
                 ImprobableToken>;

/// A remarkable property of norms, heads or the vocabulary.
struct Finding {
  std::optional<std::size_t> norm{};  ///< index into `norms`: the norm it is about, or the first of several
  double severity = 0.0;              ///< from 0 (good to know) to 1 (changes how the model must be read)
  Property property{};
};

/// The findings that follow from the other fields of a report, most severe first.
[[nodiscard]] std::vector<Finding> find(const Report& report);

}  // namespace normscope::analysis
