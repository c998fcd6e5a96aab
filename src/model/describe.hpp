#pragma once

#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

#include "architecture.hpp"

namespace normscope::model {

/// As `describe`, with the architectures given.
[[nodiscard]] Model describe_as_one_of(const std::vector<const Architecture*>& architectures,
                                       const checkpoint::Checkpoint& checkpoint);

}  // namespace normscope::model
