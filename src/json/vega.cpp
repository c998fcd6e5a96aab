#include <normscope/json/vega.hpp>

#include <utility>

#include <nlohmann/json.hpp>

namespace normscope::vega {

using Json = nlohmann::ordered_json;

Json specification(Json parts) {
  parts["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json";
  return parts;
}

Json values(Json rows) { return {{"values", std::move(rows)}}; }

Json quantity(const char* field, const char* title) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}};
}

Json logarithmic(const char* field, const char* title) {
  Json axis = quantity(field, title);
  axis["scale"] = {{"type", "log"}};
  return axis;
}

}  // namespace normscope::vega
