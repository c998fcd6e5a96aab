#pragma once

#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

#include "architecture.hpp"

namespace normscope::model {

/// Like `describe`, with a given list of architectures.
[[nodiscard]] Model describe_as_one_of(const std::vector<const Architecture*>& architectures,
                                       const checkpoint::Checkpoint& checkpoint, const Stated& stated = {});

}  // namespace normscope::model
