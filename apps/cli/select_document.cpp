#include "select_document.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <normscope/core/version.hpp>

namespace normscope::cli {

using Json = nlohmann::ordered_json;
using selectability::Answer;
using selectability::Proof;

namespace {

std::vector<std::size_t> rows_with(const selectability::Selection& selection, Answer answer) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < selection.keys.size(); ++i) {
    if (selection.keys[i].answer == answer) result.push_back(i);
  }
  return result;
}

}  // namespace

std::size_t count_proofs(const selectability::Selection& selection, Proof proof) {
  return static_cast<std::size_t>(
      std::count_if(selection.keys.begin(), selection.keys.end(),
                    [proof](const selectability::Verdict& verdict) { return verdict.proof == proof; }));
}

Json margins_json(const selectability::Selection& selection) {
  std::vector<double> margins;
  for (const selectability::Verdict& verdict : selection.keys) {
    if (verdict.answer == Answer::selectable && std::isfinite(verdict.margin))
      margins.push_back(verdict.margin);
  }
  if (margins.empty()) return nullptr;
  std::sort(margins.begin(), margins.end());
  return {{"least", margins.front()}, {"median", margins[margins.size() / 2]}, {"largest", margins.back()}};
}

Json select_document(const KeyNorm& norm, const std::optional<GivenNorm>& spec, const MatrixInput& keys,
                     const selectability::Selection& selection) {
  return {{"schema", "normscope.select/1"},
          {"version", version},
          {"keys", keys.rows},
          {"width", keys.width},
          {"norm", norm.json(spec)},
          {"selectable", selection.count(Answer::selectable)},
          {"unselectable", rows_with(selection, Answer::unselectable)},
          {"undecided", rows_with(selection, Answer::undecided)},
          {"proofs",
           {{"alone", count_proofs(selection, Proof::alone)},
            {"own_direction", count_proofs(selection, Proof::own_direction)},
            {"query", count_proofs(selection, Proof::query)},
            {"weights", count_proofs(selection, Proof::weights)},
            {"twin", count_proofs(selection, Proof::twin)}}},
          {"margin", margins_json(selection)},
          {"scale", selection.scale},
          {"tolerance", selection.tolerance}};
}

}  // namespace normscope::cli
