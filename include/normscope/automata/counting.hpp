#pragma once

#include <cstddef>
#include <vector>

#include <normscope/automata/network.hpp>

/// Which coordinates of a trained network are counters.
namespace normscope::automata {

/// How far a coordinate moves with each letter of a block a…a, b…b or c…c, leaving out the block's first
/// tenth, where it settles: mean and standard deviation.
struct Drift {
  double mean = 0.0;
  double deviation = 0.0;
};

/// A coordinate of c of an lstm, of h of the others.
struct UnitDrift {
  std::size_t unit = 0;
  std::vector<Drift> blocks{};  ///< one a letter
  /// Whether it goes up in one block and down in the next, or the other way round: both drifts at least
  /// 0.1, within a factor of 2, and deviations of at most a tenth of them.
  bool counts = false;
};

/// Least n for `drifts`: nothing within [−1, 1] moves 0.1 a letter for 0.9 n letters.
inline constexpr std::size_t least_drift_length = 30;

/// The drift of every unit over the member with n of every letter. The rule is ours; the paper shows that
/// trained lstms have such units and grus have not.
/// Source    [Weiss, Goldberg, Yahav 2018, figure 1]
/// Errors    Argument for n < least_drift_length; as `accepts`
[[nodiscard]] std::vector<UnitDrift> drifts(const Network& network, std::size_t n);

}  // namespace normscope::automata
