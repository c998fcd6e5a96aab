#include "separate_document.hpp"

#include <string>

#include <normscope/core/version.hpp>

namespace normscope::cli {
namespace {

nlohmann::ordered_json to_json(const std::vector<convex::PointWeight>& shares, const std::size_t* given_row) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const convex::PointWeight& share : shares) {
    list.push_back({{"row", given_row[share.id]}, {"weight", share.weight}});
  }
  return list;
}

nlohmann::ordered_json to_json(const std::vector<convex::ExactShare>& shares, const std::size_t* given_row) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const convex::ExactShare& share : shares) {
    list.push_back({{"row", given_row[share.row]}, {"numerator", share.numerator}});
  }
  return list;
}

nlohmann::ordered_json to_json(const convex::ExactSeparation& exact, const Sample& sample) {
  nlohmann::ordered_json json = {{"separable", std::string(to_string(exact.answer))}};
  switch (exact.answer) {
    case convex::Answer::yes: json["normal"] = exact.normal; break;
    case convex::Answer::no:
      json["a"] = to_json(exact.a, sample.given_row.data());
      json["b"] = to_json(exact.b, sample.given_row.data() + sample.class_rows[0]);
      json["denominator"] = exact.denominator;
      break;
    case convex::Answer::undecided: json["reason"] = exact.reason; break;
  }
  return json;
}

void add_separation(nlohmann::ordered_json& json, const convex::Separation& separation,
                    const Sample& sample) {
  json["separable"] = std::string(to_string(separation.answer));
  json["margin"] = separation.margin;
  json["normal"] = separation.normal;
  json["offset"] = separation.offset;
  json["a"] = to_json(separation.a, sample.given_row.data());
  json["b"] = to_json(separation.b, sample.given_row.data() + sample.class_rows[0]);
  json["residual"] = separation.residual;
  json["scale"] = separation.scale;
  json["tolerance"] = separation.tolerance;
  if (separation.exact) json["exact"] = to_json(*separation.exact, sample);
}

}  // namespace

nlohmann::ordered_json separate_document(const SeparateResult& result) {
  const Sample& sample = result.sample;
  nlohmann::ordered_json json = {{"schema", "normscope.separate/1"},
                                 {"version", version},
                                 {"inputs", inputs_json(result.inputs)},
                                 {"width", sample.width},
                                 {"rows", sample.class_rows},
                                 {"ssr", result.ssr},
                                 {"lssr", result.linear.ratio},
                                 {"direction", result.linear.direction},
                                 {"rank", result.linear.rank}};
  if (!sample.names.empty()) json["classes"] = sample.names;
  if (result.separation) add_separation(json, *result.separation, sample);
  return json;
}

}  // namespace normscope::cli
