#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/selectability/select.hpp>

#include "search.hpp"

namespace normscope::selectability {
namespace {

constexpr SnapshotKind kind{
    .name = "select", .version = 3, .others = "other keys or options", .former = "normscope.select-state/"};
constexpr const char* misfit = "holds what select did not save; delete it to start again";

[[noreturn]] void refuse(const std::string& source, const std::string& what) {
  throw Error(ErrorCode::Format, source + ": " + what);
}

/// Hash of everything that the answers depend on.
Digest fingerprint(MatrixView<const double> keys, const Options& options) {
  Packer inputs;
  inputs.put(keys.rows());
  inputs.put(keys.width());
  inputs.put(options.tolerance);
  inputs.put(options.rank_tolerance);
  if (keys.stride() == keys.width()) {
    inputs.put(
        piecewise_sha256(std::as_bytes(std::span(keys.data(), keys.rows() * keys.width())), options.threads));
  } else {
    for (std::size_t row = 0; row < keys.rows(); ++row) inputs.put(sha256(std::as_bytes(keys.row(row))));
  }
  return sha256(inputs.bytes());
}

/// Calls `visit` for every field of a `Verdict`.
template <typename V, typename Visit>
void each_field(V& verdict, const Visit& visit) {
  visit(verdict.answer);
  visit(verdict.proof);
  visit(verdict.margin);
  visit(verdict.residual);
  visit(verdict.query);
  visit(verdict.weights);
}

/// Whether the proof is of a kind that a search produces for the answer, and all its numbers are finite.
bool is_whole(const Verdict& verdict, MatrixView<const double> keys) {
  const bool query = verdict.proof == Proof::query;
  const bool known = verdict.answer == Selectability::selectable
                         ? query || verdict.proof == Proof::own_direction
                     : verdict.answer == Selectability::unselectable ? verdict.proof == Proof::weights
                     : verdict.answer == Selectability::undecided    ? verdict.proof == Proof::none
                                                                     : false;
  const auto finite = [](double value) { return std::isfinite(value); };
  return known && verdict.query.size() == (query ? keys.width() : 0) &&
         std::all_of(verdict.query.begin(), verdict.query.end(), finite) && finite(verdict.margin) &&
         finite(verdict.residual) &&
         std::all_of(verdict.weights.begin(), verdict.weights.end(), [&](const proof::PointWeight& share) {
           return share.id < keys.rows() && finite(share.weight);
         });
}

}  // namespace

const Digest& Search::Parts::inputs() const {
  if (!fingerprint) fingerprint = selectability::fingerprint(key_set.keys(), options);
  return *fingerprint;
}

/// The first row whose verdict the keys do not confirm; the number of rows if all are confirmed.
std::size_t Search::Parts::first_unproved(const Searched& searched) const {
  Selection claimed{.keys = std::vector<Verdict>(key_set.keys().rows()),
                    .center = key_set.center(),
                    .scale = key_set.scale(),
                    .extents = key_set.extents(),
                    .tolerance = options.tolerance};
  for (std::size_t i = 0; i < searched.rows.size(); ++i)
    claimed.keys[searched.rows[i]] = searched.verdicts[i];
  std::atomic<std::size_t> first{claimed.keys.size()};
  parallel_for(searched.rows.size(), 1, options.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t row = searched.rows[i];
      if (verify(key_set.keys(), claimed, row)) continue;
      std::size_t known = first;
      while (row < known && !first.compare_exchange_weak(known, row)) {
      }
    }
  });
  return first;
}

Search::Parts::Searched Search::Parts::found() const {
  if (restored) return *restored;
  Searched result{.blocks = blocks_done, .front = front.places()};
  for (std::size_t i = 0; i < searched(); ++i) {
    result.rows.push_back(key_set.row(open[i]));
    result.verdicts.push_back(verdicts[result.rows.back()]);
  }
  return result;
}

void Search::Parts::use_restored() {
  if (!restored) return;
  const Searched from = std::move(*restored);
  restored.reset();
  blocks_done = from.blocks;
  const bool fits = blocks_done <= blocks() && from.rows.size() == searched() &&
                    std::equal(from.rows.begin(), from.rows.end(), open.begin(),
                               [&](std::size_t row, std::size_t place) { return key_set.row(place) == row; });
  if (!fits) refuse(restored_from, misfit);
  for (std::size_t i = 0; i < from.rows.size(); ++i) verdicts[from.rows[i]] = from.verdicts[i];
  for (const std::size_t place : from.front) front.add(place);
}

std::string Search::state() const {
  const Parts::Searched searched = parts_->found();
  Packer payload;
  payload.put(searched.blocks);
  payload.put(searched.rows);
  payload.put(searched.front);
  for (const Verdict& verdict : searched.verdicts) {
    each_field(verdict, [&](const auto& field) { payload.put(field); });
  }
  const std::vector<std::byte> bytes = write_snapshot(kind, parts_->inputs(), payload.bytes());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Search::resume(std::string_view state, const std::string& source) {
  Parts& parts = *parts_;
  const std::vector<std::byte> payload =
      read_snapshot(std::as_bytes(std::span(state.data(), state.size())), kind, parts.inputs(), source);
  const MatrixView<const double> keys = parts.key_set.keys();
  Unpacker from(payload, source + ": " + misfit);
  Parts::Searched searched;
  from.get(searched.blocks);
  from.get(searched.rows);
  from.get(searched.front);
  const auto below = [](std::size_t end) { return [end](std::size_t index) { return index < end; }; };
  std::vector<bool> seen(keys.rows(), false);
  for (const std::size_t row : searched.rows) {
    if (!below(keys.rows())(row) || seen[row]) refuse(source, misfit);
    seen[row] = true;
    each_field(searched.verdicts.emplace_back(), [&](auto& field) { from.get(field); });
    if (!is_whole(searched.verdicts.back(), keys)) refuse(source, misfit);
  }
  from.finish();
  if (!std::all_of(searched.front.begin(), searched.front.end(), below(parts.key_set.size()))) {
    refuse(source, misfit);
  }
  const std::size_t unproved = parts.first_unproved(searched);
  if (unproved < keys.rows()) {
    refuse(source, "holds an answer for key " + std::to_string(unproved) +
                       " that its proof does not support; delete it to start again");
  }
  parts.restored = std::move(searched);
  parts.restored_from = source;
}

}  // namespace normscope::selectability
