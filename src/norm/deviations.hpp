#pragma once

#include <algorithm>
#include <span>

#include <normscope/numeric/sum.hpp>

namespace normscope::norm {

/// Takes the mean out of `values`, twice: the second pass removes what the rounding of the first left in.
inline void center(std::span<double> values) {
  for (int pass = 0; pass < 2; ++pass) {
    const double middle = mean(values);
    for (double& value : values) value -= middle;
  }
}

}  // namespace normscope::norm
