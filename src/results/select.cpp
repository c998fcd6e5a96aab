#include <normscope/results/documents.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

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

namespace {

using Json = nlohmann::ordered_json;

Json verified_findings(const std::vector<verify::Finding>& findings) {
  Json list = Json::array();
  for (const verify::Finding& finding : findings) {
    list.push_back({{"item", finding.item}, {"reason", finding.reason}});
  }
  return list;
}

}  // namespace

Json verification(const std::string& kind, const verify::Verification& found) {
  return {{"schema", "normscope.verify/1"},
          {"version", version},
          {"result", "normscope." + kind + "/1"},
          {"checked", found.checked},
          {"failed", verified_findings(found.failed)},
          {"not_checkable", verified_findings(found.not_checkable)}};
}

using Json = nlohmann::ordered_json;
using selectability::Proof;
using selectability::Selectability;

namespace {

std::vector<std::size_t> rows_with(const selectability::Selection& selection, Selectability answer) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < selection.keys.size(); ++i) {
    if (selection.keys[i].answer == answer) result.push_back(i);
  }
  return result;
}

/// Number of values in the queries and weights of all keys.
std::size_t numbers_of(const selectability::Selection& selection) {
  std::size_t numbers = 0;
  for (const selectability::Verdict& verdict : selection.keys) {
    numbers += verdict.query.size() + 2 * verdict.weights.size();
  }
  return numbers;
}

Json verdict_json(const selectability::Verdict& verdict, bool with_proof) {
  Json json = {{"answer", std::string(to_string(verdict.answer))},
               {"proof", std::string(to_string(verdict.proof))}};
  if (verdict.answer == Selectability::selectable) {
    json["margin"] = std::isfinite(verdict.margin) ? Json(std::max(0.0, verdict.margin)) : Json();
    const bool with_query = verdict.proof == Proof::query || verdict.proof == Proof::exact;
    if (with_proof && with_query) json["query"] = verdict.query;
  }
  if (verdict.answer == Selectability::unselectable) {
    json["residual"] = verdict.residual;
    if (with_proof) {
      Json weights = Json::array();
      for (const proof::PointWeight& share : verdict.weights) {
        weights.push_back({{"key", share.id}, {"weight", share.weight}});
      }
      json["weights"] = weights;
    }
  }
  return json;
}

Json exact_json(const proof::ExactSeparation& exact) {
  switch (exact.answer) {
    case proof::Answer::yes: return {{"answer", "selectable"}, {"query", exact.normal}};
    case proof::Answer::no: {
      Json weights = Json::array();
      for (const proof::ExactShare& share : exact.b) {
        weights.push_back({{"key", share.row}, {"numerator", share.numerator}});
      }
      return {{"answer", "unselectable"}, {"weights", weights}, {"denominator", exact.denominator}};
    }
    case proof::Answer::undecided: break;
  }
  return {{"answer", "undecided"}, {"reason", exact.reason}};
}

}  // namespace

Json select(const selectability::Selection& selection, const SelectDetails& details) {
  const bool here = numbers_of(selection) <= most_inline_numbers;
  Json verdicts = Json::array();
  for (const selectability::Verdict& verdict : selection.keys)
    verdicts.push_back(verdict_json(verdict, here));
  Json exact = Json::array();
  for (const selectability::ExactVerdict& verdict : selection.exact) {
    verdicts[verdict.key]["exact"] = exact_json(verdict.separation);
    if (selection.keys[verdict.key].proof == Proof::exact) exact.push_back(verdict.key);
  }
  Json proofs = Json::object();
  for (const Proof proof : selectability::every_proof) {
    proofs[std::string(to_string(proof))] = selection.count(proof);
  }
  const std::optional<selectability::Margins> margins = selection.margins();
  Json margin = nullptr;
  if (margins) {
    margin = {{"least", margins->least}, {"median", margins->median}, {"largest", margins->largest}};
  }
  Json json = {{"schema", "normscope.select/1"},
               {"version", version},
               {"inputs", inputs(details.inputs)},
               {"keys", selection.keys.size()},
               {"width", details.width},
               {"norm", details.norm},
               {"selectable", selection.count(Selectability::selectable)},
               {"unselectable", rows_with(selection, Selectability::unselectable)},
               {"undecided", rows_with(selection, Selectability::undecided)},
               {"proofs", proofs},
               {"margin", margin},
               {"scale", selection.scale},
               {"tolerance", selection.tolerance},
               {"center", selection.keys.empty() ? std::vector<double>{} : selection.center},
               {"verdicts", verdicts},
               {"certificates", certificates(here, details.folder)}};
  if (details.exact) json["exact"] = exact;
  return json;
}

Json random_table(const selectability::RandomTable& table,
                  const std::vector<selectability::RandomCell>& cells, const Json& norm) {
  Json list = Json::array();
  for (const selectability::RandomCell& cell : cells) {
    list.push_back({{"width", cell.width},
                    {"count", cell.count},
                    {"any", cell.any},
                    {"mean", cell.mean},
                    {"undecided", cell.undecided}});
  }
  return {{"schema", "normscope.select-table/1"},
          {"version", version},
          {"norm", norm},
          {"runs", table.runs},
          {"seed", table.seed},
          {"cells", list}};
}

}  // namespace normscope::results
