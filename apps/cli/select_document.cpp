#include "select_document.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <normscope/core/version.hpp>

namespace normscope::cli {

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

/// How many numbers the queries and weights of all keys are.
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
      for (const convex::PointWeight& share : verdict.weights) {
        weights.push_back({{"key", share.id}, {"weight", share.weight}});
      }
      json["weights"] = weights;
    }
  }
  return json;
}

Json to_json(const convex::ExactSeparation& exact) {
  switch (exact.answer) {
    case convex::Answer::yes: return {{"answer", "selectable"}, {"query", exact.normal}};
    case convex::Answer::no: {
      Json weights = Json::array();
      for (const convex::ExactShare& share : exact.b) {
        weights.push_back({{"key", share.row}, {"numerator", share.numerator}});
      }
      return {{"answer", "unselectable"}, {"weights", weights}, {"denominator", exact.denominator}};
    }
    case convex::Answer::undecided: break;
  }
  return {{"answer", "undecided"}, {"reason", exact.reason}};
}

}  // namespace

std::optional<Margins> margins_of(const selectability::Selection& selection) {
  std::vector<double> margins;
  for (const selectability::Verdict& verdict : selection.keys) {
    if (verdict.answer == Selectability::selectable && std::isfinite(verdict.margin))
      margins.push_back(std::max(0.0, verdict.margin));
  }
  if (margins.empty()) return {};
  std::sort(margins.begin(), margins.end());
  return Margins{margins.front(), margins[margins.size() / 2], margins.back()};
}

Json select_document(const SelectResult& result) {
  const selectability::Selection& selection = result.selection;
  const bool here = numbers_of(selection) <= most_inline_numbers;
  Json verdicts = Json::array();
  for (const selectability::Verdict& verdict : selection.keys)
    verdicts.push_back(verdict_json(verdict, here));
  Json exact = Json::array();
  for (const selectability::ExactVerdict& verdict : selection.exact) {
    verdicts[verdict.key]["exact"] = to_json(verdict.separation);
    if (selection.keys[verdict.key].proof == Proof::exact) exact.push_back(verdict.key);
  }
  Json proofs = Json::object();
  for (const Proof proof : selectability::every_proof) {
    proofs[std::string(to_string(proof))] = selection.count(proof);
  }
  const std::optional<Margins> margins = margins_of(selection);
  Json margin = nullptr;
  if (margins) {
    margin = {{"least", margins->least}, {"median", margins->median}, {"largest", margins->largest}};
  }
  Json json = {{"schema", "normscope.select/1"},
               {"version", version},
               {"inputs", inputs_json(result.inputs)},
               {"keys", result.keys.rows},
               {"width", result.keys.width},
               {"norm", result.norm.json(result.spec)},
               {"selectable", selection.count(Selectability::selectable)},
               {"unselectable", rows_with(selection, Selectability::unselectable)},
               {"undecided", rows_with(selection, Selectability::undecided)},
               {"proofs", proofs},
               {"margin", margin},
               {"scale", selection.scale},
               {"tolerance", selection.tolerance},
               {"center", selection.keys.empty() ? std::vector<double>{} : selection.center},
               {"verdicts", verdicts},
               {"certificates", certificates_json(here, result.folder)}};
  if (result.exact) json["exact"] = exact;
  return json;
}

}  // namespace normscope::cli
