#include <normscope/results/morph.hpp>

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/rounded.hpp>
#include <normscope/nets/morph.hpp>

namespace normscope::results {
nlohmann::ordered_json morph(const nets::Net& net, const nets::Dataset& data) {
  const nets::MorphStates states = morph_states(net, data.view());
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const std::vector<double>& entries : states.list) {
    Json state = Json::array();
    for (std::size_t row = 0; row < data.rows(); ++row) {
      Json point = Json::array();
      for (std::size_t i = 0; i < states.width; ++i)
        point.push_back(rounded_to_four_decimals(entries[row * states.width + i]));
      state.push_back(std::move(point));
    }
    list.push_back(std::move(state));
  }
  return {{"schema", "normscope.morph/1"},
          {"width", states.width},
          {"labels", data.labels},
          {"states", std::move(list)}};
}

}  // namespace normscope::results
