#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace normscope::nets {

/// Records of a training, for a figure.
struct Curves {
  std::vector<double> step;
  std::vector<double> loss;
  std::vector<double> accuracy;
};

/// At most `most` + 1 records: every n-th and the last.
///
/// Shapes    loss, accuracy (records)
///
/// Requires  most >= 1
[[nodiscard]] Curves thinned(std::span<const double> loss, std::span<const double> accuracy,
                             std::size_t record_every, std::size_t most);

}  // namespace normscope::nets
