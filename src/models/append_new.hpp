#pragma once

#include <vector>

#include <normscope/models/model.hpp>

namespace normscope::models {

/// Appends those of `more` whose part of a stored matrix `list` does not have in the same role.
void append_new(std::vector<Linear>& list, std::vector<Linear> more);

}  // namespace normscope::models
