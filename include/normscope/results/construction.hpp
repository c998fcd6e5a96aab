#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/construct.hpp>

namespace normscope::results {

/// An LN-Net that Projection Merge made and `output` holds (empty for none), schema "normscope.build/1"
/// (docs/schemas/build.schema.json).
[[nodiscard]] nlohmann::ordered_json construction(const nets::Construction& made, nets::Mode mode,
                                                  const std::string& output);

/// One line of JSON per layer (docs/schemas/build-trace.schema.json); an infinite gap, where no other class
/// is on the opposite side, is null.
[[nodiscard]] std::string fold_lines(const std::vector<nets::Fold>& folds);

}  // namespace normscope::results
