#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include <normscope/core/error.hpp>

#include "planning.hpp"
#include "symmetries.hpp"

namespace normscope::rewrite {

Order identity_order(std::size_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

bool is_identity(const Order& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

RowMajorMatrix Rows::read(std::uint64_t first, std::uint64_t count) const {
  const std::vector<double> values = rows_of({side.file, map, norm, turn}, first, count);
  RowMajorMatrix rows =
      row_major(values, static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(map.in));
  if (centered) rows.colwise() -= rows.rowwise().mean().eval();
  return rows;
}

Rows reader_rows(const Planned& side, const models::Linear& map, const models::Norm* norm) {
  if (norm == nullptr) return {side, map};
  const bool centered = facts(norm->kind).centers && norm->groups == 1;
  return {side, map, read_norm(side.file, *norm), side.turn(*norm), centered};
}

void FoundSymmetries::add_reader(const models::Linear& before, const models::Linear& after,
                                 const Order& order, Blocks blocks) {
  Relabelled entry{after, {}, std::move(blocks)};
  if (!is_identity(order)) {
    entry.map.out_indices.clear();
    for (const std::size_t output : order) entry.map.out_indices.push_back(after.stored_output(output));
  }
  result_.readers.insert_or_assign(&before, std::move(entry));
}

void FoundSymmetries::add_writer(const models::Linear& before, const models::Linear& after,
                                 const Order& order, Blocks blocks) {
  Relabelled entry{after, {}, std::move(blocks)};
  if (!is_identity(order)) entry.inputs.assign(order.begin(), order.end());
  result_.writers.insert_or_assign(place_of(before.weight), std::move(entry));
}

Relabelled FoundSymmetries::reader_so_far(const models::Linear& before, const models::Linear& after) const {
  const auto found = result_.readers.find(&before);
  return found == result_.readers.end() ? Relabelled{after} : found->second;
}

Relabelled& FoundSymmetries::reader(const models::Linear& before, const models::Linear& after) {
  return result_.readers.try_emplace(&before, Relabelled{after}).first->second;
}

Relabelled& FoundSymmetries::writer(const models::Linear& before, const models::Linear& after) {
  return result_.writers.try_emplace(place_of(before.weight), Relabelled{after}).first->second;
}

void FoundSymmetries::note(const char* kind, std::string sentence) {
  Note& found = notes_[kind];
  if (found.count++ == 0) found.sentence = std::move(sentence);
}

Relabelling FoundSymmetries::take() {
  for (const auto& [kind, found] : notes_) {
    result_.findings.push_back(
        {kind, found.sentence + (found.count > 1 ? fmt::format("; so for {} branches", found.count) : "")});
  }
  return std::move(result_);
}

Relabelling find_relabelling(const files::Checkpoint& old_file, const models::Model& old_model,
                             const files::Checkpoint& new_file, const models::Model& new_model,
                             const Turns& turns, double tolerance) {
  const auto plan = [](const models::Model& model) -> std::optional<forward::Plan> {
    try {
      return forward::plan_of(model, true);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unsupported) throw;
      return {};
    }
  };
  std::optional<forward::Plan> of_old = plan(old_model);
  std::optional<forward::Plan> of_new = plan(new_model);
  if (!of_old || !of_new || of_old->steps.size() != of_new->steps.size() ||
      old_model.decoder->activation != new_model.decoder->activation ||
      old_model.decoder->clamped_gate != new_model.decoder->clamped_gate) {
    return {};
  }
  const Planned before{old_file, old_model, std::move(*of_old)};
  const Planned after{new_file, new_model, std::move(*of_new), &turns};
  FoundSymmetries found;
  for (std::size_t s = 0; s < before.plan.steps.size(); ++s) {
    const forward::Step& old_step = before.plan.steps[s];
    const forward::Step& new_step = after.plan.steps[s];
    if (old_step.before.size() != new_step.before.size()) return {};
    for (std::size_t k = 0; k < old_step.before.size(); ++k) {
      const forward::Branch& a = old_step.before[k];
      const forward::Branch& b = new_step.before[k];
      if (a.heads.size() != b.heads.size() || a.norm != b.norm) continue;
      const BranchPair pair{before,
                            after,
                            a,
                            b,
                            a.norm ? &old_model.norms[*a.norm] : nullptr,
                            b.norm ? &new_model.norms[*b.norm] : nullptr,
                            a.after != nullptr ? *a.after : old_model.norms[old_step.norm],
                            b.after != nullptr ? *b.after : new_model.norms[new_step.norm],
                            tolerance};
      a.heads.empty() ? match_neurons(pair, found) : match_heads(pair, found);
    }
  }
  return found.take();
}

}  // namespace normscope::rewrite
