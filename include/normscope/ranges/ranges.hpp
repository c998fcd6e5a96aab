#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/core/view.hpp>
#include <normscope/model/model.hpp>

/// What a norm guarantees the linear maps that read it. Its output is y = r G Π u + β with |u| <= 1 in each
/// block, so a row w of a reader, with bias c, computes a number within
///
///     w·β + c ± Σ_blocks r |Π (g ⊙ w)|
///
/// whatever enters the norm; elementwise kinds have Σ |g_i w_i| instead. Each end is approached by x = ± Π(g
/// ⊙ w), scaled up until eps is negligible.
///
/// Source    [Brody, Alon, Yahav 2023] |u| = 1 after scaling; the intervals are ours
/// Accuracy  proved: rounded outward by (4 n + 64) u of the sizes that meet in a row of n entries
///           (tests: Ranges.NoInputLeavesThem, Ranges.BothEndsAreAttained)
namespace normscope::ranges {

/// The interval of one row.
struct Interval {
  double lower = 0.0, upper = 0.0;
  /// Root mean square over evenly distributed directions u, |u| = 1: √(centre² + Σ r² |Π(g ⊙ w)|²/d), d the
  /// dimension of a block's directions.
  double typical = 0.0;

  [[nodiscard]] double size() const;  ///< the largest |value| in it
};

/// The interval of w·y + c.
/// Shapes    row (spec.width)
/// Requires  a valid norm
[[nodiscard]] Interval interval(const NormSpec& spec, std::span<const double> row, double bias);

/// An input of the norm at which w·y + c comes close to the end of its interval; all zero where no input
/// changes it.
///
/// Shapes    row, x (spec.width)
void attaining_input(const NormSpec& spec, std::span<const double> row, bool upper, std::span<double> x);

/// The end of a row's interval, and what the norm gives at `attaining_input`.
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
  double typical = 0.0;     ///< the largest of a row
  std::vector<std::size_t>
      never_positive{};  ///< rows whose interval has no positive number: dead units of a ReLU
  std::vector<std::size_t>
      never_negative{};   ///< rows whose interval has no negative number: linear units of a ReLU
  std::string refused{};  ///< why nothing is known, or empty

  [[nodiscard]] double size() const;  ///< the largest |value| of any row
};

/// One norm of a model.
struct NormRanges {
  std::string name;
  double largest = 0.0;     ///< of |y_i| over all features
  std::size_t feature = 0;  ///< where
  double median = 0.0;      ///< of the features' largest |y_i|
  double typical = 0.0;     ///< root mean square of that feature over evenly distributed directions
  std::vector<ReaderRanges> readers{};
  std::string refused{};  ///< why nothing is known of the norm, or empty
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

/// Every reader of every norm, in one pass over their weights.
/// Errors    Cancelled; what cannot be read is `refused`
/// Cost      a multiplication and an addition for each weight
[[nodiscard]] ModelRanges of_model(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                                   unsigned threads = 0, const Progress& progress = {});

}  // namespace normscope::ranges
