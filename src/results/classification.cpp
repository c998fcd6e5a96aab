#include <normscope/results/classification.hpp>

#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::results {

nlohmann::ordered_json classification(const nets::Net& net, std::span<const std::int64_t> labels) {
  return {{"schema", "normscope.run/1"},
          {"version", version},
          {"layers", net.layers.size()},
          {"rows", labels.size()},
          {"labels", std::vector<std::int64_t>(labels.begin(), labels.end())}};
}

}  // namespace normscope::results
