#include <normscope/analysis/context_keys.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/product.hpp>
#include <normscope/selectability/select.hpp>

#include <normscope/heads/projection.hpp>

namespace normscope::analysis {
namespace {

const NormContexts* contexts_of(const std::vector<NormContexts>& contexts, const std::string& norm) {
  const auto at = std::find_if(contexts.begin(), contexts.end(),
                               [&](const NormContexts& known) { return known.norm == norm; });
  return at == contexts.end() || at->rows.empty() ? nullptr : &*at;
}

/// A row through a norm of one block with these parts.
void apply_parts(const NormSpec& norm, bool project, bool scale, std::span<double> row) {
  const auto count = static_cast<double>(row.size());
  double mean = 0.0;
  for (const double value : row) mean += value / count;
  if (!project) mean = 0.0;
  double squares = 0.0;
  for (const double value : row) squares += (value - mean) * (value - mean);
  const double sigma = scale ? std::sqrt(squares / norm.squared_radius() + norm.eps) : 1.0;
  const double factor = sigma > 0.0 ? 1.0 / sigma : 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = (row[i] - mean) * factor * norm.gain_at(i) + norm.bias_at(i);
  }
}

/// A head's map from rows to keys.
struct KeyMap {
  NormSpec norm;
  heads::Projection projection;
  std::optional<NormSpec> own{};
  const models::Rotary* rotary = nullptr;
  std::size_t head_dim = 0;

  [[nodiscard]] std::vector<double> keys(MatrixView<const double> rows, NormParts parts) const {
    const bool project = parts == NormParts::projection || parts == NormParts::both;
    const bool scale = parts == NormParts::scaling || parts == NormParts::both;
    std::vector<double> inputs(rows.rows() * rows.width());
    for (std::size_t r = 0; r < rows.rows(); ++r) {
      const std::span<double> row(inputs.data() + r * rows.width(), rows.width());
      std::copy(rows.row(r).begin(), rows.row(r).end(), row.begin());
      apply_parts(norm, project, scale, row);
    }
    std::vector<double> keys(rows.rows() * head_dim);
    const MatrixView<const double> weight(projection.weight.data(), head_dim, rows.width());
    multiply(MatrixView<const double>(inputs.data(), rows.rows(), rows.width()),
             Factor<double>(weight).transposed(), MatrixView<double>(keys.data(), rows.rows(), head_dim));
    for (std::size_t r = 0; r < rows.rows(); ++r) {
      const std::span<double> key(keys.data() + r * head_dim, head_dim);
      for (std::size_t i = 0; i < projection.bias.size(); ++i) key[i] += projection.bias[i];
      if (own) apply_parts(*own, own->centers(), true, key);
      if (rotary != nullptr) rotate(*rotary, r, key);
    }
    return keys;
  }
};

ContextKeys measured(const files::Checkpoint& checkpoint, const models::Model& model, std::size_t index,
                     const NormContexts& contexts) {
  const models::Head& head = model.heads[index];
  const models::Linear* const between = head.between ? &*head.between : nullptr;
  ContextKeys result{.head = index, .norm = head.norm};
  result.refused = heads::head_refusal(model, head, head.norm, between);
  if (result.refused.empty() && head.rotary && head.rotary->frequencies.empty()) {
    result.refused = "its rotation depends on the length of the context";
  }
  if (!result.refused.empty()) return result;
  KeyMap map{.norm = models::read_norm(checkpoint, *find_norm(model, head.norm)),
             .projection = heads::read_projection(checkpoint, *head.key, between),
             .rotary = head.rotary ? &*head.rotary : nullptr,
             .head_dim = head.head_dim};
  if (const models::Norm* const own = own_norm(model, *head.key)) {
    map.own = models::read_norm(checkpoint, *own);
  }
  result.own = map.norm.centers() ? NormParts::both : NormParts::scaling;
  for (const MatrixView<const double> rows : contexts.rows) {
    if (rows.width() != map.norm.width) {
      result.refused = "the rows of its norm have another width";
      return result;
    }
    ++result.contexts;
    result.keys += rows.rows();
    for (std::size_t part = 0; part < norm_parts; ++part) {
      const std::vector<double> keys = map.keys(rows, static_cast<NormParts>(part));
      selectability::Selection found;
      try {
        found = selectability::keys(MatrixView<const double>(keys.data(), rows.rows(), map.head_dim),
                                    {.threads = 1});
      } catch (const Error& error) {
        if (error.code() != ErrorCode::Argument) throw;
        result.refused = error.what();
        return result;
      }
      result.counts[part].selectable += found.count(selectability::Selectability::selectable);
      result.counts[part].undecided += found.count(selectability::Selectability::undecided);
      if (result.contexts == 1 && part == static_cast<std::size_t>(result.own)) {
        for (const selectability::Verdict& key : found.keys) result.first_context.push_back(key.answer);
      }
    }
  }
  return result;
}

/// Estimated multiplications of `selectability::keys` for the four kinds of keys of each context: a tenth of
/// the keys solve for working sets of up to head_dim others.
double estimated_work(const NormContexts& contexts, std::size_t head_dim) {
  double total = 0.0;
  for (const MatrixView<const double> rows : contexts.rows) {
    const auto count = static_cast<double>(rows.rows());
    const auto dim = static_cast<double>(head_dim);
    total += 4.0 * count * (count * dim + dim * static_cast<double>(rows.width()) + 0.1 * dim * dim * dim);
  }
  return total;
}

/// One head of each set of heads with the same keys, whose norm has contexts; at most as many as wanted.
std::vector<std::size_t> chosen_heads(const models::Model& model, const std::vector<NormContexts>& contexts,
                                      std::size_t most) {
  std::set<std::tuple<std::string, int, int>> known;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    const models::Head& head = model.heads[i];
    if (contexts_of(contexts, head.norm) == nullptr) continue;
    if (known.emplace(head.stack, head.layer, head.key_value_head).second) found.push_back(i);
  }
  if (found.size() <= most) return found;
  std::vector<std::size_t> some;
  for (std::size_t k = 0; k < most; ++k) some.push_back(found[k * found.size() / most]);
  return some;
}

}  // namespace

std::vector<ContextKeys> selectable_context_keys(const files::Checkpoint& checkpoint,
                                                 const models::Model& model,
                                                 const std::vector<NormContexts>& contexts,
                                                 const ContextKeyOptions& options, const Progress& progress) {
  const std::vector<std::size_t> heads = chosen_heads(model, contexts, options.most_heads);
  const std::size_t together = thread_count(options.threads);
  std::size_t within = 0;
  for (double spent = 0.0; within < heads.size() && spent < options.budget; ++within) {
    const models::Head& head = model.heads[heads[within]];
    spent += estimated_work(*contexts_of(contexts, head.norm), head.head_dim);
  }
  std::vector<ContextKeys> result;
  while (result.size() < within) {
    const std::size_t first = result.size();
    progress("keys of heads", first, heads.size());
    result.resize(std::min(within, first + together));
    parallel_for(result.size() - first, 1, options.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        result[i] = measured(checkpoint, model, heads[i], *contexts_of(contexts, model.heads[heads[i]].norm));
      }
    });
  }
  progress("keys of heads", heads.size(), heads.size());
  return result;
}

}  // namespace normscope::analysis
