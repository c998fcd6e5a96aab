#pragma once

#include <cstddef>
#include <vector>

#include <normscope/nets/rnn/network.hpp>
#include <normscope/nets/rnn/train.hpp>

/// Finds the coordinates of a trained network that are counters.
namespace normscope::nets::rnn {

/// Change of a coordinate per letter in a block a…a, b…b or c…c: mean and standard deviation, without the
/// first tenth of the block, in which it settles.
struct Drift {
  double mean = 0.0;
  double deviation = 0.0;
};

/// A coordinate of c for an lstm, of h for other cells.
struct UnitDrift {
  std::size_t unit = 0;
  std::vector<Drift> blocks{};  ///< one per letter
  /// Whether it increases in one block and decreases in the next, or vice versa: both drifts at least 0.1 in
  /// size, within a factor of 2, and deviations of at most a tenth of them.
  bool counts = false;
};

/// Smallest n for `drifts`: no quantity within [−1, 1] changes by 0.1 per letter for 0.9 n letters.
inline constexpr std::size_t least_drift_length = 30;

/// The drift of every unit over the member with n of every letter. The rule is ours; the paper shows that
/// trained lstms have such units and grus do not.
///
/// Source    [Weiss, Goldberg, Yahav 2018, figure 1]
///
/// Errors    Argument for n < least_drift_length; as `accepts`
[[nodiscard]] std::vector<UnitDrift> drifts(const Network& network, std::size_t n);

/// `drifts` for n of at least `least_drift_length`; none for smaller ones.
///
/// Errors    as `accepts`
[[nodiscard]] std::vector<UnitDrift> drifts_if_long(const Network& network, std::size_t n);

/// `score` on 1000 near members, of exponents up to 200 for a^n b^n and up to 150 for a^n b^n c^n, as in the
/// test sets of [Weiss, Goldberg, Yahav 2018].
///
/// Errors    as `accepts`
[[nodiscard]] Score score_on_near_members(const Network& network);

// Trained networks that are part of the library.

/// The training settings of a network here; scripts/train_counters trains it again and rounds the weights to
/// five decimals.
///
/// Errors    Unsupported for cells other than lstm and gru
[[nodiscard]] TrainSpec trained_spec(CellKind cell, Language language);

/// An lstm or a gru of ten units, trained on a^n b^n up to n = 100 or on a^n b^n c^n up to 50. The lstm
/// continues to count beyond that (test: Trained.LstmsCountAndGrusDoNot).
///
/// Errors    as `trained_spec`
[[nodiscard]] const Network& trained(CellKind cell, Language language);

}  // namespace normscope::nets::rnn
