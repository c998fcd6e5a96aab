#include <normscope/selectability/select.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::selectability {
namespace {

using proof::ExactSeparation;
using proof::ExactShare;
using proof::ExactStart;

/// Keys decided between two checks for cancellation.
constexpr std::size_t keys_together = 64;
/// Widths from which on a single key uses all threads.
constexpr std::size_t wide = 128;

bool is_open(const Verdict& verdict) {
  return verdict.answer == Selectability::undecided || verdict.proof == Proof::weights;
}

/// Whether the key lies in the hull of the keys with positive weights; rows index `keys`.
ExactSeparation decide_among(MatrixView<const double> keys, std::size_t index,
                             const std::vector<proof::PointWeight>& weights, const proof::ExactLimits& limits,
                             unsigned threads, const Progress& progress) {
  std::vector<double> values;
  ExactStart start{.a = {{0, 1.0}}};
  for (const proof::PointWeight& share : weights) {
    start.b.push_back({start.b.size(), share.weight});
    values.insert(values.end(), keys.row(share.id).begin(), keys.row(share.id).end());
  }
  const MatrixView<const double> others(values.data(), weights.size(), keys.width());
  ExactSeparation result = proof::separate_exactly({keys.row(index).data(), 1, keys.width()}, others, start,
                                                   {}, limits, threads, progress);
  for (ExactShare& share : result.b) share.row = weights[share.row].id;
  std::sort(result.b.begin(), result.b.end(),
            [](const ExactShare& x, const ExactShare& y) { return x.row < y.row; });
  return result;
}

/// The best floating-point separation of the key from all others.
ExactStart closest(MatrixView<const double> keys, std::size_t index, unsigned threads,
                   const Progress& progress) {
  std::vector<double> values;
  values.reserve((keys.rows() - 1) * keys.width());
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    if (row != index) values.insert(values.end(), keys.row(row).begin(), keys.row(row).end());
  }
  proof::Separation found =
      proof::separate({keys.row(index).data(), 1, keys.width()},
                      {values.data(), keys.rows() - 1, keys.width()}, 0.0, threads, progress);
  for (proof::PointWeight& share : found.b) share.id += share.id >= index ? 1 : 0;
  ExactStart start{.a = {{0, 1.0}}, .b = std::move(found.b)};
  for (const double entry : found.normal) start.normal.emplace_back(entry);
  return start;
}

ExactSeparation decide(MatrixView<const double> keys, std::size_t index,
                       const std::vector<proof::PointWeight>& weights, const proof::ExactLimits& limits,
                       unsigned threads, const Progress& progress) {
  if (!weights.empty()) {
    ExactSeparation found = decide_among(keys, index, weights, limits, threads, progress);
    if (found.answer == proof::Answer::no) return found;
  }
  const ExactStart start = closest(keys, index, threads, progress);
  const std::size_t self[] = {index};
  return proof::separate_exactly({keys.row(index).data(), 1, keys.width()}, keys, start, self, limits,
                                 threads, progress);
}

void take(MatrixView<const double> keys, std::size_t index, const ExactSeparation& found, Verdict& verdict) {
  if (found.answer == proof::Answer::undecided) return;
  verdict.proof = Proof::exact;
  verdict.weights.clear();
  verdict.residual = 0.0;
  if (found.answer == proof::Answer::yes) {
    verdict.answer = Selectability::selectable;
    verdict.query = found.direction;
    verdict.margin = std::max(0.0, verified_margin(keys, index, verdict.query));
    return;
  }
  verdict.answer = Selectability::unselectable;
  for (const ExactShare& share : found.b) {
    verdict.weights.push_back({share.row, share.weight});
  }
  verdict.residual = verified_residual(keys, index, verdict.weights);
}

}  // namespace

void decide_exactly(MatrixView<const double> keys, Selection& selection, const proof::ExactLimits& limits,
                    unsigned threads, const Progress& progress) {
  NORMSCOPE_ASSERT(selection.keys.size() == keys.rows());
  selection.exact.clear();
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    if (is_open(selection.keys[i])) selection.exact.push_back({.key = i});
  }
  std::vector<ExactVerdict>& open = selection.exact;
  const auto decide_one = [&](ExactVerdict& verdict, unsigned workers, const Progress& inner) {
    Verdict& known = selection.keys[verdict.key];
    verdict.separation = decide(keys, verdict.key, known.weights, limits, workers, inner);
    take(keys, verdict.key, verdict.separation, known);
  };
  const std::size_t step = keys.width() < wide ? keys_together : 1;
  for (std::size_t first = 0; first < open.size(); first += step) {
    progress("exact key", first, open.size());
    if (step == 1) {
      decide_one(open[first], threads, progress);
      continue;
    }
    parallel_for(std::min(step, open.size() - first), 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) decide_one(open[first + i], 1, {});
    });
  }
  progress("exact key", open.size(), open.size());
}

}  // namespace normscope::selectability
