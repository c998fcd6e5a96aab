#include <normscope/analysis/next_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/product.hpp>

namespace normscope::analysis {
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

}  // namespace normscope::analysis
