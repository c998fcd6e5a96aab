#include <normscope/selectability/select.hpp>

#include <algorithm>
#include <cmath>

namespace normscope::selectability {

std::string_view to_string(Selectability answer) {
  switch (answer) {
    case Selectability::selectable: return "selectable";
    case Selectability::unselectable: return "unselectable";
    case Selectability::undecided: return "undecided";
  }
  return "";
}

std::string_view to_string(Proof proof) {
  switch (proof) {
    case Proof::none: return "none";
    case Proof::alone: return "alone";
    case Proof::own_direction: return "own_direction";
    case Proof::query: return "query";
    case Proof::weights: return "weights";
    case Proof::duplicate: return "twin";
    case Proof::exact: return "exact";
  }
  return "";
}

std::size_t Selection::count(Proof proof) const {
  return static_cast<std::size_t>(std::count_if(
      keys.begin(), keys.end(), [&](const Verdict& verdict) { return verdict.proof == proof; }));
}

std::optional<Margins> Selection::margins() const {
  std::vector<double> margins;
  for (const Verdict& verdict : keys) {
    if (verdict.answer == Selectability::selectable && std::isfinite(verdict.margin))
      margins.push_back(std::max(0.0, verdict.margin));
  }
  if (margins.empty()) return {};
  std::sort(margins.begin(), margins.end());
  return Margins{margins.front(), margins[margins.size() / 2], margins.back()};
}

std::size_t Selection::count(Selectability answer) const {
  return static_cast<std::size_t>(std::count_if(
      keys.begin(), keys.end(), [answer](const Verdict& verdict) { return verdict.answer == answer; }));
}

std::vector<double> Selection::query(MatrixView<const double> all, std::size_t index) const {
  const Verdict& verdict = keys[index];
  if (verdict.answer != Selectability::selectable) return {};
  if (verdict.proof == Proof::query || verdict.proof == Proof::exact) return verdict.query;
  std::vector<double> result(all.row(index).begin(), all.row(index).end());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] -= center[i];
  return result;
}

Selection keys(MatrixView<const double> keys, const Options& options, const Progress& progress) {
  Search search(keys, options);
  while (!search.done()) {
    search.report(progress);
    search.step();
  }
  search.report(progress);
  return std::move(search).result();
}

}  // namespace normscope::selectability
