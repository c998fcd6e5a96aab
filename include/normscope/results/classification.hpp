#pragma once

#include <cstdint>
#include <span>

#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/net.hpp>

namespace normscope::results {

/// The labels that `net` gave to rows, schema "normscope.run/1" (docs/schemas/run.schema.json).
[[nodiscard]] nlohmann::ordered_json classification(const nets::Net& net,
                                                    std::span<const std::int64_t> labels);

}  // namespace normscope::results
