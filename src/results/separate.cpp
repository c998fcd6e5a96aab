#include <normscope/results/separate.hpp>

#include <string>

#include <normscope/core/version.hpp>
#include <normscope/results/inputs.hpp>

namespace normscope::results {
namespace {

nlohmann::ordered_json weights_json(const std::vector<proof::PointWeight>& shares,
                                    const std::size_t* given_row) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const proof::PointWeight& share : shares) {
    list.push_back({{"row", given_row[share.id]}, {"weight", share.weight}});
  }
  return list;
}

nlohmann::ordered_json weights_json(const std::vector<proof::ExactShare>& shares,
                                    const std::size_t* given_row) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const proof::ExactShare& share : shares) {
    list.push_back({{"row", given_row[share.row]}, {"numerator", share.numerator}});
  }
  return list;
}

nlohmann::ordered_json exact_json(const proof::ExactSeparation& exact, const SeparateResult& result) {
  nlohmann::ordered_json json = {{"separable", std::string(to_string(exact.answer))}};
  switch (exact.answer) {
    case proof::Answer::yes: json["normal"] = exact.normal; break;
    case proof::Answer::no:
      json["a"] = weights_json(exact.a, result.given_row.data());
      json["b"] = weights_json(exact.b, result.given_row.data() + result.class_rows[0]);
      json["denominator"] = exact.denominator;
      break;
    case proof::Answer::undecided: json["reason"] = exact.reason; break;
  }
  return json;
}

void add_separation(nlohmann::ordered_json& json, const proof::Separation& separation,
                    const SeparateResult& result) {
  json["separable"] = std::string(to_string(separation.answer));
  json["margin"] = separation.margin;
  json["normal"] = separation.normal;
  json["offset"] = separation.offset;
  json["a"] = weights_json(separation.a, result.given_row.data());
  json["b"] = weights_json(separation.b, result.given_row.data() + result.class_rows[0]);
  json["residual"] = separation.residual;
  json["scale"] = separation.scale;
  json["tolerance"] = separation.tolerance;
  if (separation.exact) json["exact"] = exact_json(*separation.exact, result);
}

}  // namespace

nlohmann::ordered_json separate(const SeparateResult& result) {
  nlohmann::ordered_json json = {{"schema", "normscope.separate/1"}, {"version", version},
                                 {"inputs", inputs(result.inputs)},  {"width", result.width},
                                 {"rows", result.class_rows},        {"ssr", result.ssr},
                                 {"lssr", result.linear.ratio},      {"direction", result.linear.direction},
                                 {"rank", result.linear.rank}};
  if (!result.classes.empty()) json["classes"] = result.classes;
  if (result.separation) add_separation(json, *result.separation, result);
  return json;
}

}  // namespace normscope::results
