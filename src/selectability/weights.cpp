#include <normscope/selectability/weights.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>

namespace normscope::selectability {

std::vector<double> attention_weights(MatrixView<const double> keys, std::span<const double> query) {
  if (keys.rows() == 0 || keys.width() != query.size()) {
    throw Error(ErrorCode::Shape, fmt::format("attention weights: {} keys of width {}, a query of {}; "
                                              "expected at least one key, of the query's width",
                                              keys.rows(), keys.width(), query.size()));
  }
  std::vector<double> weights(keys.rows());
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    for (std::size_t c = 0; c < query.size(); ++c) weights[i] += query[c] * keys.row(i)[c];
    if (!std::isfinite(weights[i])) {
      throw Error(ErrorCode::Argument,
                  fmt::format("attention weights: the score of key {} is {}, expected a finite number", i,
                              weights[i]));
    }
  }
  // The largest score is subtracted, so that no exponential overflows.
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0.0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::string attention_figure(std::span<const double> weights, const Selection& selection) {
  using Json = nlohmann::ordered_json;
  NORMSCOPE_ASSERT(weights.size() == selection.keys.size());
  Json rows = Json::array();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    rows.push_back({{"key", i}, {"weight", weights[i]}, {"answer", to_string(selection.keys[i].answer)}});
  }
  const Json colour = {{"field", "answer"},
                       {"type", "nominal"},
                       {"legend", nullptr},
                       {"scale", {{"domain", {"selectable", "unselectable", "undecided"}}}}};
  const Json x = {{"field", "key"},
                  {"type", "ordinal"},
                  {"title", "key"},
                  {"axis", {{"labelAngle", 0}, {"labelOverlap", true}, {"ticks", false}}}};
  const Json y = {{"field", "weight"},
                  {"type", "quantitative"},
                  {"title", "attention"},
                  {"scale", {{"domain", {0, 1}}}},
                  {"axis", {{"format", ".0%"}, {"tickCount", 5}}}};
  const Json tips = {{{"field", "key"}}, {{"field", "weight"}, {"format", ".3f"}}, {{"field", "answer"}}};
  return Json{{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
              {"description", "What the query pays to each key."},
              {"width", "container"},
              {"height", 150},
              {"data", {{"name", "weights"}, {"values", std::move(rows)}}},
              {"mark", "bar"},
              {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", tips}}}}
      .dump();
}

}  // namespace normscope::selectability
