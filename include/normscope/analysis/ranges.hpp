#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// The range of every number that a linear map computes from a norm's output. That output is
/// y = r G Π u + β with |u| <= 1 in each block, so a row w of a reader, with bias c, computes a number within
///
///     w·β + c ± Σ_blocks r |Π (g ⊙ w)|
///
/// for every input of the norm; elementwise kinds have Σ |g_i w_i| instead. Each end is approached by
/// x = ± Π(g ⊙ w), scaled up until eps is negligible.
///
/// Source    [Brody, Alon, Yahav 2023] |u| = 1 after scaling; the intervals are ours
///
/// Accuracy  proved: rounded outward by (4 n + 64) u of the sum of the magnitudes in a row of n entries
///           (tests: Ranges.NoInputLeavesThem, Ranges.BothEndsAreAttained)
namespace normscope::analysis {

/// The interval of one row.
struct Interval {
  double lower = 0.0, upper = 0.0;
  /// Root mean square over evenly distributed directions u, |u| = 1: √(centre² + Σ r² |Π(g ⊙ w)|²/d), d the
  /// dimension of a block's directions.
  double typical = 0.0;

  [[nodiscard]] double size() const;  ///< the largest |value| in it
};

/// The interval of w·y + c.
///
/// Shapes    row (spec.width)
///
/// Requires  a valid norm
[[nodiscard]] Interval interval(const NormSpec& spec, std::span<const double> row, double bias);

/// An input of the norm at which w·y + c is close to the end of its interval; all zero if w·y + c does not
/// depend on the input.
///
/// Shapes    row, x (spec.width)
void attaining_input(const NormSpec& spec, std::span<const double> row, bool upper, std::span<double> x);

/// The end of a row's interval, and the value of w·y + c at `attaining_input`.
struct End {
  std::size_t row = 0;
  double bound = 0.0;
  double attained = 0.0;
};

/// All rows of one linear map.
struct ReaderRanges {
  std::string role;
  std::string weight;  ///< the tensor
  std::size_t rows = 0;
  End lowest{}, highest{};  ///< over all rows
  double typical = 0.0;     ///< the largest root mean square of a row
  std::vector<std::size_t>
      never_positive{};  ///< rows whose interval has no positive number: dead units of a ReLU
  std::vector<std::size_t>
      never_negative{};   ///< rows whose interval has no negative number: linear units of a ReLU
  std::string refused{};  ///< why nothing is known, or empty
  bool left_out = false;  ///< whether it is refused because the budget did not suffice

  [[nodiscard]] double size() const;   ///< the largest |value| of any row
  [[nodiscard]] double ratio() const;  ///< `size` over `typical`; 0 if `typical` is 0
};

/// One norm of a model.
struct NormRanges {
  std::string name;
  double largest = 0.0;         ///< of |y_i| over all features
  std::size_t feature = 0;      ///< where
  double median = 0.0;          ///< of the features' largest |y_i|
  double typical = 0.0;         ///< root mean square of that feature over evenly distributed directions
  double median_typical = 0.0;  ///< of the features' root mean squares
  std::vector<ReaderRanges> readers{};
  std::string refused{};  ///< why nothing is known of the norm, or empty

  [[nodiscard]] double unevenness() const;  ///< `largest` over `median`; 0 if `median` is 0
};

/// Logits, after scale and soft cap.
struct LogitRanges {
  std::string norm;
  std::size_t tokens = 0;
  End lowest{}, highest{};
  double scale = 1.0;
  double soft_cap = 0.0;
};

struct ModelRanges {
  std::vector<NormRanges> norms{};  ///< in the order of the forward pass
  std::optional<LogitRanges> logits{};
  std::string logits_refused{};  ///< why there are none, or empty
};

/// For each reader of each norm, in the order of the forward pass, whether it fits into what those before it
/// leave of the budget, which counts each weight as four multiplications. A reader that does not fit is
/// passed over, so that the maps of fused experts leave room for smaller ones.
[[nodiscard]] std::vector<std::vector<bool>> readers_within(const models::Model& model, double budget);

/// The ranges of every reader of every norm, in one pass over their weights. Weights that cannot be read, and
/// readers that are not `readers_within` the budget, are `refused`.
///
/// Errors    Cancelled
///
/// Cost      a multiplication and an addition for each weight
[[nodiscard]] ModelRanges of_model(const files::Checkpoint& checkpoint, const models::Model& model,
                                   unsigned threads = 0, const Progress& progress = {},
                                   double budget = std::numeric_limits<double>::infinity());

/// Readers that have other inputs as well, which their ranges do not cover, as sentences: ALBERT's shared
/// layers first read a linear map of the embeddings.
[[nodiscard]] std::vector<std::string> not_covered(const models::Model& model);

/// The extremes among the ranges of a model.
struct RangeSummary {
  std::size_t readers = 0;
  std::size_t known = 0;  ///< readers whose ranges are known
  /// The norm and the reader with the largest number; null where no reader is known.
  const NormRanges* largest_norm = nullptr;
  const ReaderRanges* largest = nullptr;
  double least_ratio = 0.0, most_ratio = 0.0;          ///< of a reader's largest number and its typical size
  std::size_t never_positive = 0, never_negative = 0;  ///< rows
  /// The norm whose largest feature exceeds its median feature by the most; null where no norm is known.
  const NormRanges* most_uneven = nullptr;
};

/// Requires  `found` outlives the result
[[nodiscard]] RangeSummary summarize(const ModelRanges& found);

/// A type in which activations are stored, and its largest finite number.
struct NumberType {
  const char* name;
  const char* title;
  double largest;
};

inline constexpr NumberType number_types[] = {{"float16", "float16", 65504.0},
                                              {"bfloat16", "bfloat16", 0x1.fep+127},
                                              {"float8_e4m3", "FP8 E4M3", 448.0},
                                              {"float8_e5m2", "FP8 E5M2", 57344.0}};

/// The number of steps, of the 127 of an int8 scale that represents `size`, that `typical` takes; 0 if `size`
/// is 0.
[[nodiscard]] double int8_steps(double size, double typical);

/// The number of readers with a row that exceeds the largest number of the type at some input.
[[nodiscard]] std::size_t overflowing(const ModelRanges& found, const NumberType& type);

}  // namespace normscope::analysis
