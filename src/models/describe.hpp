#pragma once

#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "architecture.hpp"

namespace normscope::models {

/// Like `describe`, with a given list of architectures.
[[nodiscard]] Model describe_as_one_of(const std::vector<const Architecture*>& architectures,
                                       const files::Checkpoint& checkpoint, const Stated& stated = {});

}  // namespace normscope::models
