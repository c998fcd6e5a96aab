#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <normscope/analysis/causes.hpp>
#include <normscope/analysis/findings.hpp>
#include <normscope/analysis/ranges.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/heads/heads.hpp>
#include <normscope/models/model.hpp>
#include <normscope/selectability/vocabulary.hpp>

/// Everything about one checkpoint in one value: its norms, heads, ranges and vocabulary, and what is
/// unusual.
namespace normscope::analysis {

/// Statistics of a gain or a bias.
struct ParameterStatistics {
  double min = 0.0, max = 0.0, mean = 0.0, std = 0.0;
  double median_abs = 0.0;
  double length = 0.0;  ///< Euclidean; infinite beyond the largest double
  std::size_t negative = 0;
  std::size_t zero = 0;
  std::size_t not_finite = 0;  ///< entries that are not finite; they do not count in the other numbers
};

/// The statistics of `values`.
///
/// Shapes    values (width)
[[nodiscard]] ParameterStatistics statistics(const std::vector<double>& values);

/// The directions that the norm erases.
struct NullSpace {
  std::size_t dim = 0;
  /// |cosine| between the erased direction and all-ones; with groups, of the block where it is least.
  /// Absent where coordinates are erased outright.
  std::optional<double> cosine_to_ones{};
  std::vector<Component> top{};  ///< largest entries of that direction, or the first erased coordinates
};

struct Axis {
  std::size_t rank = 0;  ///< 1: the longest
  double length = 0.0;
  double ratio_to_median = 0.0;
  Component largest{};
};

/// The ellipsoid the norm fills; see norm::NormImage.
struct Image {
  std::size_t semi_axes = 0;  ///< how many are not zero
  double longest = 0.0, median = 0.0, shortest = 0.0;
  double condition = 1.0;
  double effective_dimension = 0.0;
  double rms_radius = 0.0;                        ///< see norm::rms_radius
  double energy = 0.0;                            ///< sum of the squared semi-axes
  double energy_top_1 = 0.0, energy_top_8 = 0.0;  ///< shares of it
  std::vector<double> lengths{};                  ///< every semi-axis, descending
  std::vector<Axis> top_axes{};
};

/// A gain far from its norm's median.
struct Outlier {
  std::size_t coordinate = 0;
  double gain = 0.0;
  double ratio_to_median = 0.0;  ///< of absolute values
};

/// Bins of a histogram of gains: bin k has |gain| in [2^(k/4), 2^((k+1)/4)).
inline constexpr double gain_bins_per_octave = 4.0;

/// Consecutive coordinates [begin, end) of a norm, and the gain of theirs that is furthest from the median.
struct GainBlock {
  std::size_t begin = 0, end = 0;
  std::size_t coordinate = 0;
  double ratio = 1.0;  ///< |gain| over the median of the norm's gains that are not zero
};

/// Largest number of blocks that a norm's coordinates are divided into.
inline constexpr std::size_t most_gain_blocks = 64;

/// How a linear map uses the norm that it reads, as shares of its squared weights with the gain folded in,
/// w_ij g_j.
struct Reader {
  std::size_t index = 0;              ///< into `readers` of the norm
  double removed = 0.0;               ///< along directions that the norm's projection removes, without effect
  double chance = 0.0;                ///< the expected value of that share for random weights
  std::size_t along_longest = 0;      ///< outputs whose row has a cosine of at least 1/2 to the longest axis
  std::vector<Component> features{};  ///< the coordinates with the largest shares, as weights
};

/// Similarity of a norm's image and that of the next norm of the same width.
struct Neighbour {
  std::size_t index = 0;
  double similarity = 0.0;       ///< norm::image_similarity
  double top_axis_cosine = 0.0;  ///< |cosine| between the two longest axes
};

struct NormReport {
  models::Norm norm{};
  std::string not_measured{};  ///< why its tensors cannot be read; the rest is then absent
  std::optional<ParameterStatistics> gain{}, bias{};
  /// Absent, like `image`, where the gain is not finite or the image leaves the range of float64.
  std::optional<NullSpace> null_space{};
  std::optional<Image> image{};
  /// Length of the bias over the image's root-mean-square radius; absent without a bias or an image.
  std::optional<double> shift_over_radius{};
  /// The first of the largest gains by magnitude; absent where all are zero or one is not finite.
  std::optional<Outlier> largest_gain{};
  std::vector<Outlier> outliers{};  ///< at least `outlier_ratio` times the median, largest first
  /// Features that the norm switches off: gains of at most `off_ratio` times the median, in order.
  std::vector<Outlier> switched_off{};
  std::map<int, std::size_t> gain_sizes{};  ///< gains that are not zero in each bin
  std::vector<GainBlock> gain_blocks{};     ///< in order; empty without a finite gain
  std::size_t sign_changes = 0;             ///< negative gains of features that are not switched off
  /// Only for a norm whose class stores the gain minus 1.
  std::optional<models::GainShifts> shifts{};
  std::optional<Neighbour> next{};
  std::vector<Reader> readers{};  ///< those of the norm's readers whose weights can be read
};

/// Largest number of norms that are measured in one checkpoint; a note says so if a file has more.
inline constexpr std::size_t most_norms = 4096;

/// Number of outliers of one norm that documents and figures show; `find` considers all.
inline constexpr std::size_t listed_outliers = 16;

/// A row of the token embedding.
struct EmbeddingRow {
  std::size_t token = 0;
  std::string name{};  ///< empty where no file names it
  double entry = 0.0;  ///< at the coordinate in question
  double share = 0.0;  ///< of that entry's square in the row's squared length
};

/// How a model's token embedding uses one coordinate.
struct EmbeddingUse {
  double over_mean = 0.0;            ///< mean square of the coordinate's column over that of all columns
  std::vector<EmbeddingRow> rows{};  ///< with the largest entries, by magnitude
};

/// A feature of the residual stream that some norms switch off, or give an outlier gain.
struct UnusualFeature {
  std::size_t coordinate = 0;
  std::string stack{};                  ///< whose stream it is in
  std::vector<std::size_t> off{};       ///< indices of the norms that switch it off
  std::vector<std::size_t> outliers{};  ///< indices of the norms that give it an outlier gain
  std::vector<std::size_t> norms{};     ///< indices of all norms of that stream
  std::vector<double> ratios{};         ///< |gain| over the median, of each of `norms`
  /// Absent where no token embedding writes to that stream directly, or it is too large to be read.
  std::optional<EmbeddingUse> embedding{};

  [[nodiscard]] std::size_t unusual() const { return off.size() + outliers.size(); }
};

/// Features that a report lists: those unusual in most norms.
inline constexpr std::size_t listed_features = 32;

struct FileSize {
  std::string name;
  std::uint64_t bytes = 0;
};

struct Report {
  std::string path;
  std::string name;  ///< of the file or folder, wherever the command was run
  std::string format;
  std::vector<FileSize> files;
  std::size_t tensors = 0;
  std::vector<std::pair<std::string, std::string>> metadata;
  models::Model model;
  std::vector<NormReport> norms;         ///< in the order of `model.norms`
  std::vector<UnusualFeature> features;  ///< those unusual in most norms first
  std::vector<heads::HeadReach> heads;   ///< in the order of `model.heads`
  ModelRanges ranges{};                  ///< in the order of `norms`
  selectability::VocabularyReach vocabulary{};
  GainConsistency gains_on_text{};
  std::vector<Finding> findings;            ///< most severe first
  std::vector<ComparedMeasure> measures{};  ///< beside reference models
  std::vector<Cause> causes{};              ///< what the report begins with, most severe first
};

/// What the budget of a report did not suffice for.
struct LeftOut {
  std::size_t heads = 0;    ///< entries of `Report::heads`
  std::size_t readers = 0;  ///< maps whose weights are not read, for statistics or ranges
  std::size_t tokens = 0;   ///< tokens that are not decided

  [[nodiscard]] bool nothing() const { return heads == 0 && readers == 0 && tokens == 0; }
};
[[nodiscard]] LeftOut left_out(const Report& report);

/// Measures every norm of `checkpoint`, as many heads, and the statistics and ranges of as many readers, as
/// `vocabulary.budget` allows, each, and its vocabulary as far as `vocabulary` allows. The
/// result does not depend on the machine.
///
/// Errors    as `reach_of_heads`, `reach_of_vocabulary`; Cancelled
///
/// Cost      a secular solve a norm, memory O(width); `reach_of_heads`; `reach_of_vocabulary`;
///           `of_model`
[[nodiscard]] Report audit(const files::Checkpoint& checkpoint, models::Model model, unsigned threads = 0,
                           const Progress& progress = {},
                           const selectability::VocabularyOptions& vocabulary = {});
/// Audits the model that `models::describe` finds.
[[nodiscard]] Report audit(const files::Checkpoint& checkpoint, unsigned threads = 0,
                           const Progress& progress = {},
                           const selectability::VocabularyOptions& vocabulary = {});

/// The norms and features alone, without heads, ranges, vocabulary and findings.
///
/// Errors    Cancelled
///
/// Cost      a secular solve a norm, memory O(width); the weights of the `readers_within` the budget, once
[[nodiscard]] Report audit_norms(const files::Checkpoint& checkpoint, models::Model model,
                                 unsigned threads = 0, const Progress& progress = {},
                                 double budget = std::numeric_limits<double>::infinity());

/// About `points` of the ranks 1 … count: all of the first ones, then spaced evenly in the logarithm,
/// including the last.
[[nodiscard]] std::vector<std::size_t> thinned_ranks(std::size_t count, std::size_t points);

}  // namespace normscope::analysis
