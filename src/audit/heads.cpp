#include <normscope/audit/heads.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::audit {
namespace {

const model::Norm* norm_named(const model::Model& model, const std::string& name) {
  const auto at = std::find_if(model.norms.begin(), model.norms.end(),
                               [&](const model::Norm& norm) { return norm.name == name; });
  return name.empty() || at == model.norms.end() ? nullptr : &*at;
}

bool names(const std::vector<model::Linear>& linears, const model::Linear& wanted) {
  return std::any_of(linears.begin(), linears.end(), [&](const model::Linear& linear) {
    return linear.weight.selector() == wanted.weight.selector() && linear.role == wanted.role;
  });
}

/// The norm that queries or keys go through on their way to the scores, or none.
const model::Norm* own_norm(const model::Model& model, const model::Linear& part) {
  const auto at = std::find_if(model.norms.begin(), model.norms.end(), [&](const model::Norm& norm) {
    return norm.placement == model::Placement::inside && names(norm.writers, part);
  });
  return at == model.norms.end() ? nullptr : &*at;
}

/// Why a head's scores are not q·k of two linear maps of one norm's output, norms of their own aside, or
/// empty.
std::string refusal(const model::Model& model, const model::Head& head) {
  if (!head.not_modelled.empty()) return "not modelled: " + head.not_modelled;
  if (!head.query || !head.key) return "its query or key weights are not in the file";
  const model::Norm* const norm = norm_named(model, head.norm);
  if (norm == nullptr) return "the norm it reads is not known";
  if (norm->groups != 1) return fmt::format("its norm has {} groups", norm->groups);
  if (!names(norm->readers, *head.key)) return "its keys do not read the norm that its queries read";
  if (head.query->in != norm->width || head.key->in != norm->width) return "it reads a part of its norm";
  for (const model::Linear* part : {&*head.query, &*head.key}) {
    const model::Norm* const own = own_norm(model, *part);
    if (own != nullptr && (own->width != head.head_dim || own->groups != 1)) {
      return "its queries or keys pass a norm that is not one of each head";
    }
  }
  return {};
}

HeadReach reach(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                const model::Head& head) {
  HeadReach result{.refused = refusal(model, head)};
  if (!result.refused.empty()) return result;
  const NormSpec norm = model::read_norm(checkpoint, *norm_named(model, head.norm));
  const std::vector<double> query = model::read_weight(checkpoint, *head.query, 0, head.head_dim);
  const std::vector<double> key = model::read_weight(checkpoint, *head.key, 0, head.head_dim);
  const std::vector<double> query_bias = model::read_bias(checkpoint, *head.query);
  const std::vector<double> key_bias = model::read_bias(checkpoint, *head.key);
  const auto own = [&](const model::Linear& part, std::string& name) -> std::optional<NormSpec> {
    const model::Norm* const found = own_norm(model, part);
    if (found == nullptr) return {};
    name = found->name;
    return model::read_norm(checkpoint, *found);
  };
  const std::optional<NormSpec> query_norm = own(*head.query, result.query_norm);
  const std::optional<NormSpec> key_norm = own(*head.key, result.key_norm);
  try {
    result.attention = selectability::attention(norm, {.query = {query.data(), head.head_dim, norm.width},
                                                       .query_bias = query_bias,
                                                       .key = {key.data(), head.head_dim, norm.width},
                                                       .key_bias = key_bias,
                                                       .scale = head.scale,
                                                       .query_norm = query_norm ? &*query_norm : nullptr,
                                                       .key_norm = key_norm ? &*key_norm : nullptr});
  } catch (const Error& error) {
    // Weights may hold NaN; the other heads are still worth knowing.
    if (error.code() != ErrorCode::Argument) throw;
    result.refused = "its weights are not finite";
  }
  return result;
}

}  // namespace

std::vector<HeadReach> reach_of_heads(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                                      unsigned threads, const Progress& progress) {
  std::vector<HeadReach> result(model.heads.size());
  const std::size_t together = thread_count(threads);
  for (std::size_t first = 0; first < result.size(); first += together) {
    progress("measuring heads", first, result.size());
    const std::size_t count = std::min(together, result.size() - first);
    parallel_for(count, 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        result[i] = reach(checkpoint, model, model.heads[i]);
      }
    });
  }
  progress("measuring heads", result.size(), result.size());
  return result;
}

}  // namespace normscope::audit
