#include <normscope/analysis/in_model.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/heads/heads.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/selectability/select.hpp>
#include <normscope/selectability/vocabulary.hpp>

namespace normscope::analysis {

// Selectable keys

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

/// `ContextKeys::lost_from` of keys whose answers among all are given. A key in the hull of some is in that
/// of more, so that its first position is found by bisection.
std::vector<std::size_t> positions_lost_from(MatrixView<const double> keys,
                                             const std::vector<selectability::Selectability>& answers) {
  constexpr auto unselectable = selectability::Selectability::unselectable;
  const std::size_t count = keys.rows();
  std::map<std::size_t, std::vector<selectability::Verdict>> among_first;
  const auto is_lost = [&](std::size_t key, std::size_t position) {
    const auto [found, is_new] = among_first.try_emplace(position);
    if (is_new) {
      const MatrixView<const double> first(keys.data(), position + 1, keys.width());
      found->second = selectability::select_keys(first, {.threads = 1}).keys;
    }
    return found->second[key].answer == unselectable;
  };
  std::vector<std::size_t> from(count, count);
  for (std::size_t key = 0; key < count; ++key) {
    if (answers[key] != unselectable) continue;
    std::size_t low = key;  // A key is not lost before there is another one.
    std::size_t high = count - 1;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (is_lost(key, middle) ? high : low) = middle;
    }
    from[key] = low < high && low > 0 && is_lost(key, low) ? low : high;
  }
  return from;
}

ContextKeys measured(const files::Checkpoint& checkpoint, const models::Model& model, std::size_t index,
                     const NormContexts& contexts, bool positions) {
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
        found = selectability::select_keys(MatrixView<const double>(keys.data(), rows.rows(), map.head_dim),
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
        if (positions && head.window.value_or(rows.rows()) >= rows.rows()) {
          result.lost_from =
              positions_lost_from({keys.data(), rows.rows(), map.head_dim}, result.first_context);
        }
      }
    }
  }
  return result;
}

/// Estimated multiplications of `selectability::select_keys` for the four kinds of keys of each context: a
/// tenth of the keys solve for working sets of up to head_dim others.
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
        result[i] = measured(checkpoint, model, heads[i], *contexts_of(contexts, model.heads[heads[i]].norm),
                             options.positions);
      }
    });
  }
  progress("keys of heads", heads.size(), heads.size());
  return result;
}

// Next tokens

namespace {

/// Rows whose logits are in memory together.
constexpr std::size_t states_at_once = 16;

/// The point of the ball to which the norm maps `row`, and its factor if σ is replaced by `mean_sigma`.
double point_of(const NormSpec& norm, std::span<const double> row, double mean_sigma,
                std::span<double> point) {
  const double mean =
      norm.centers() ? std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size()) : 0.0;
  double squares = 0.0;
  for (const double value : row) squares += (value - mean) * (value - mean);
  const double sigma = std::sqrt(squares / norm.squared_radius() + norm.eps);
  const double factor = sigma > 0.0 ? 1.0 / (sigma * norm.radius()) : 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) point[i] = (row[i] - mean) * factor;
  return mean_sigma > 0.0 ? sigma / mean_sigma : 1.0;
}

/// log Σ exp.
double log_sum(std::span<const double> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

double divergence(std::span<const double> own, std::span<const double> frozen) {
  const double own_sum = log_sum(own);
  const double frozen_sum = log_sum(frozen);
  double total = 0.0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double log_p = own[i] - own_sum;
    total += std::exp(log_p) * (log_p - (frozen[i] - frozen_sum));
  }
  return std::max(0.0, total);
}

std::vector<std::size_t> likeliest(std::span<const double> logits, std::size_t count) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t kept = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
                    });
  order.resize(kept);
  return order;
}

/// The result for one row.
struct RowResult {
  double divergence = 0.0;
  bool changed = false;
  std::vector<std::size_t> likeliest{};
};

/// The logits at `point`, multiplied by `factor` before the offsets are added, given `product` = A · point;
/// `shared` is the term common to all logits that the head leaves out.
void finish_logits(const selectability::VocabularyHead& head, std::span<const double> product, double factor,
                   double shared, std::span<double> logits) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = factor * product[i] + head.logits.offsets[i];
    if (head.soft_cap > 0.0) {
      const double whole = logits[i] + factor * shared + head.common_offset;
      logits[i] = head.soft_cap * std::tanh(whole / head.soft_cap);
    }
  }
}

std::vector<RowResult> measure(const selectability::VocabularyHead& head, MatrixView<const double> rows,
                               double mean_sigma, const NextTokenOptions& options, const Progress& progress) {
  const std::size_t width = head.logits.width;
  const std::size_t tokens = head.logits.tokens;
  const std::size_t count = std::min(rows.rows(), options.most_rows);
  std::vector<RowResult> results(count);
  std::vector<double> points(states_at_once * width);
  std::vector<double> factors(states_at_once);
  std::vector<double> products(states_at_once * tokens);
  for (std::size_t first = 0; first < count; first += states_at_once) {
    progress("logits", first, count);
    const std::size_t some = std::min(states_at_once, count - first);
    for (std::size_t r = 0; r < some; ++r) {
      factors[r] = point_of(head.norm, rows.row((first + r) * rows.rows() / count), mean_sigma,
                            {points.data() + r * width, width});
    }
    const MatrixView<const double> all = head.logits.view();
    parallel_for(tokens, 256, options.threads, [&](std::size_t begin, std::size_t end) {
      multiply(
          MatrixView<const double>(points.data(), some, width),
          Factor<double>(MatrixView<const double>(all.row(begin).data(), end - begin, width)).transposed(),
          MatrixView<double>(products.data() + begin, some, end - begin, tokens));
    });
    parallel_for(some, 1, options.threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> own(tokens);
      std::vector<double> frozen(tokens);
      for (std::size_t r = begin; r < end; ++r) {
        const double* const point = points.data() + r * width;
        const double shared =
            head.common.empty() ? 0.0 : std::inner_product(point, point + width, head.common.begin(), 0.0);
        const std::span<const double> product(products.data() + r * tokens, tokens);
        finish_logits(head, product, 1.0, shared, own);
        finish_logits(head, product, factors[r], shared, frozen);
        RowResult& result = results[first + r];
        result.divergence = divergence(own, frozen);
        result.likeliest = likeliest(own, options.top);
        result.changed = likeliest(frozen, 1) != likeliest(own, 1);
      }
    });
  }
  return results;
}

void decide_reach(const selectability::VocabularyHead& head, std::vector<NextToken>& list,
                  const NextTokenOptions& options, const Progress& progress) {
  std::vector<selectability::TokenReach> reach(head.logits.tokens);
  for (selectability::TokenReach& token : reach) token.done = true;
  for (const NextToken& next : list) reach[next.token].done = false;
  selectability::decide(
      head.logits, reach,
      {.threads = options.threads, .screen = false, .progress = progress, .work = options.budget});
  for (NextToken& next : list) {
    next.answer = reach[next.token].answer;
    next.lead_at_most = reach[next.token].upper;
  }
}

}  // namespace

NextTokens next_tokens(const selectability::VocabularyHead& head, MatrixView<const double> rows,
                       double mean_sigma, const NextTokenOptions& options, const Progress& progress) {
  if (rows.width() != head.logits.width) {
    throw Error(ErrorCode::Shape,
                fmt::format("next tokens: rows of width {}, expected {}", rows.width(), head.logits.width));
  }
  NextTokens result;
  const std::vector<RowResult> measured = measure(head, rows, mean_sigma, options, progress);
  result.rows = measured.size();
  if (measured.empty()) return result;
  std::vector<double> divergences;
  std::map<std::size_t, NextToken> found;
  for (const RowResult& row : measured) {
    divergences.push_back(row.divergence);
    result.mean_divergence += row.divergence / static_cast<double>(measured.size());
    result.changed += row.changed ? 1.0 / static_cast<double>(measured.size()) : 0.0;
    for (std::size_t k = 0; k < row.likeliest.size(); ++k) {
      NextToken& next = found[row.likeliest[k]];
      next.token = row.likeliest[k];
      ++next.rows;
      if (k == 0) ++next.first;
    }
  }
  std::sort(divergences.begin(), divergences.end());
  result.median_divergence = divergences[divergences.size() / 2];
  result.most_divergence = divergences.back();
  for (const auto& [token, next] : found) result.tokens.push_back(next);
  std::stable_sort(result.tokens.begin(), result.tokens.end(),
                   [](const NextToken& a, const NextToken& b) { return a.rows > b.rows; });
  if (result.tokens.size() > options.most_tokens) {
    result.left_out = result.tokens.size() - options.most_tokens;
    result.tokens.resize(options.most_tokens);
  }
  decide_reach(head, result.tokens, options, progress);
  return result;
}

namespace {

/// The norm of the model that corresponds to the module; null if there are none or several.
const models::Norm* norm_of(const models::Model& model, const std::string& name) {
  const models::Norm* found = nullptr;
  for (const models::Norm& norm : model.norms) {
    if (norm.name == name) return &norm;
    if (!names_norm(name, norm.name)) continue;
    if (found != nullptr) return nullptr;
    found = &norm;
  }
  return found;
}

void add_next_tokens(InModel& result, const files::Checkpoint& checkpoint, const models::Model& model,
                     const Observer* final_norm, const InModelOptions& options, const Progress& progress) {
  if (final_norm == nullptr) {
    result.next_refused = "no norm that the unembedding reads was watched";
    return;
  }
  try {
    const selectability::VocabularyHead head = selectability::vocabulary_head(checkpoint, model);
    result.next = next_tokens(head, final_norm->sample(), final_norm->mean_sigma(), options.next, progress);
    const auto file = models::find_token_names(checkpoint.files().front().parent_path());
    if (file) result.tokens = models::read_token_names(*file, head.logits.tokens);
  } catch (const Error& error) {
    // The head is not modelled, or its weights are not finite: the results about norms are still returned.
    if (error.code() != ErrorCode::Unsupported && error.code() != ErrorCode::Argument) throw;
    result.next_refused = error.what();
  }
}

}  // namespace

bool names_norm(std::string_view name, std::string_view norm) {
  if (name.size() < norm.size()) std::swap(name, norm);
  if (norm.empty() || !name.ends_with(norm)) return false;
  return name.size() == norm.size() || name[name.size() - norm.size() - 1] == '.';
}

InModel in_model(const files::Checkpoint& checkpoint, const models::Model& model,
                 const std::vector<WatchedNorm>& watched, const InModelOptions& options,
                 const Progress& progress) {
  InModel result{.model = &model};
  if (model.vocabulary) result.final_norm = model.vocabulary->final_norm;
  std::vector<NormContexts> contexts;
  const Observer* final_norm = nullptr;
  for (const WatchedNorm& one : watched) {
    const models::Norm* const norm = norm_of(model, one.name);
    if (norm == nullptr) continue;
    contexts.push_back({norm->name, one.observer.contexts()});
    if (norm->name == result.final_norm) final_norm = &one.observer;
  }
  result.heads = selectable_context_keys(checkpoint, model, contexts, options.heads, progress);
  add_next_tokens(result, checkpoint, model, final_norm, options, progress);
  return result;
}

}  // namespace normscope::analysis
