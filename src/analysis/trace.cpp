#include <normscope/analysis/trace.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::analysis {
namespace {

/// First tokens of a context whose keys compete: the work grows with their cube.
constexpr std::size_t most_keys = 256;

/// Collects what enters one norm.
class NormRecord {
 public:
  NormRecord(const files::Checkpoint& checkpoint, const models::Model& model, std::size_t index,
             std::size_t most_axes)
      : spec_(models::read_norm(checkpoint, model.norms[index])) {
    if (spec_.groups != 1) {
      throw Error(ErrorCode::Unsupported, fmt::format("not modelled: {} has {} groups, expected one",
                                                      model.norms[index].name, spec_.groups));
    }
    validate(spec_);
    const norm::NormImage image(spec_);
    const std::size_t count = std::min(most_axes, image.semi_axes().size());
    vectors_.resize(count * spec_.width);
    if (count > 0) image.axes(0, {vectors_.data(), count, spec_.width});
    for (std::size_t k = 0; k < count; ++k) {
      const std::span<const double> vector = axis(k);
      const auto largest = std::max_element(vector.begin(), vector.end(),
                                            [](double a, double b) { return std::abs(a) < std::abs(b); });
      axes_.push_back({image.semi_axes()[k], static_cast<std::size_t>(largest - vector.begin()), *largest});
    }
  }

  /// `before` has the rows that entered the norm before, or nothing.
  [[nodiscard]] TracedNorm record(std::size_t index, MatrixView<const double> rows,
                                  std::span<const double> before, std::size_t key_positions) const {
    Observer observer(spec_, {.axes = axes_.size(), .contexts = 1, .positions = key_positions});
    observer.add(rows);
    observer.add_contexts(rows, rows.rows());
    TracedNorm traced{.norm = index, .axes = axes_, .observer = std::move(observer)};
    for (std::size_t t = 0; t < rows.rows(); ++t) {
      traced.tokens.push_back(of(rows.row(t)));
      TokenAtNorm& token = traced.tokens.back();
      token.added = before.empty() ? token.length
                                   : distance(rows.row(t), before.subspan(t * rows.width(), rows.width()));
    }
    return traced;
  }

 private:
  [[nodiscard]] static double distance(std::span<const double> a, std::span<const double> b) {
    double squares = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(squares);
  }

  [[nodiscard]] std::span<const double> axis(std::size_t k) const {
    return {vectors_.data() + k * spec_.width, spec_.width};
  }

  [[nodiscard]] TokenAtNorm of(std::span<const double> x) const {
    const auto width = static_cast<double>(x.size());
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / width;
    const double centre = spec_.centers() ? mean : 0.0;
    double energy = 0.0;
    double squares = 0.0;
    for (const double value : x) {
      energy += value * value;
      squares += (value - centre) * (value - centre);
    }
    TokenAtNorm token;
    token.length = std::sqrt(energy);
    token.ones_share = energy > 0.0 ? std::min(1.0, width * mean * mean / energy) : 0.0;
    token.sigma = std::sqrt(squares / spec_.squared_radius() + spec_.eps);
    const double factor = token.sigma > 0.0 ? 1.0 / token.sigma : 0.0;
    token.radius = std::sqrt(squares) * factor / spec_.radius();
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      const std::span<const double> vector = axis(k);
      double along = 0.0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        along += vector[i] * spec_.gain_at(i) * (x[i] - centre) * factor;
      }
      token.place.push_back(along / axes_[k].length);
    }
    return token;
  }

  NormSpec spec_;
  std::vector<double> vectors_{};  ///< unit vectors of the axes, one a row
  std::vector<TracedAxis> axes_{};
};

/// The first of `tokens` queries of which, with those after it, each of `heads` has at most `most` weights
/// together.
std::size_t first_query_of(std::size_t tokens, std::size_t heads, std::size_t most) {
  std::size_t first = tokens;
  for (std::size_t weights = 0; first > 0; --first) {
    weights += heads * first;
    if (weights > most) break;
  }
  return first;
}

void add_reach(const files::Checkpoint& checkpoint, const TraceOptions& options, const Progress& progress,
               TokenTrace& trace) {
  const models::Linear& map = *trace.model->vocabulary->unembedding;
  if (map.in != 0 && map.out > options.most_reach / map.in) {
    trace.within.next_refused = fmt::format(
        "the unembedding has {} × {} weights, more than are searched for a text", map.out, map.in);
    return;
  }
  const Observer& last = trace.norms.back().observer;
  try {
    trace.within.next = next_tokens(selectability::vocabulary_head(checkpoint, *trace.model), last.sample(),
                                    last.mean_sigma(),
                                    {.top = options.likeliest,
                                     .most_rows = trace.tokens.size(),
                                     .most_tokens = static_cast<std::size_t>(map.out),
                                     .budget = options.budget,
                                     .threads = options.threads},
                                    progress);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Unsupported && error.code() != ErrorCode::Argument) throw;
    trace.within.next_refused = error.what();
  }
}

}  // namespace

TokenTrace trace(const files::Checkpoint& checkpoint, const models::Model& model,
                 std::span<const std::size_t> tokens, const TraceOptions& options, const Progress& progress) {
  const forward::Decoder decoder(checkpoint, model, options.threads);
  TokenTrace result{.model = &model, .tokens = {tokens.begin(), tokens.end()}};
  result.key_positions = std::min(tokens.size(), most_keys);
  result.first_query = first_query_of(tokens.size(), model.heads.size(), options.attention);
  std::vector<double> before;
  const std::vector<double> hidden = decoder.run(
      tokens,
      [&](std::size_t norm, MatrixView<const double> rows) {
        result.norms.push_back(NormRecord(checkpoint, model, norm, options.axes)
                                   .record(norm, rows, before, result.key_positions));
        before.assign(rows.data(), rows.data() + rows.rows() * rows.width());
      },
      progress, {.first = result.first_query, .see = [&](std::size_t head, MatrixView<const double> weights) {
                   result.attention.push_back({.head = head});
                   for (std::size_t r = 0; r < weights.rows(); ++r) {
                     const std::span<const double> row = weights.row(r).first(result.first_query + r + 1);
                     result.attention.back().weights.emplace_back(row.begin(), row.end());
                   }
                 }});
  result.predictions = decoder.predict(tokens, hidden, options.likeliest, progress);
  result.within.model = &model;
  result.within.final_norm = model.norms[decoder.norms().back()].name;
  std::vector<NormContexts> contexts;
  for (const TracedNorm& norm : result.norms) {
    contexts.push_back({model.norms[norm.norm].name, norm.observer.contexts()});
  }
  result.within.heads = selectable_context_keys(checkpoint, model, contexts,
                                                {.most_heads = model.heads.size(),
                                                 .budget = options.budget,
                                                 .positions = true,
                                                 .threads = options.threads},
                                                progress);
  add_reach(checkpoint, options, progress, result);
  return result;
}

namespace {

/// Softmax of logits, in their place.
void to_probabilities(std::span<double> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (double& logit : logits) sum += logit = std::exp(logit - most);
  for (double& logit : logits) logit /= sum;
}

/// Indices of the largest values, the largest first.
std::vector<std::size_t> largest(std::span<const double> values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), end, order.end(),
                    [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.erase(end, order.end());
  return order;
}

}  // namespace

std::vector<ChangedToken> tokens_after_change(const forward::Decoder& decoder, const NormSpec& norm,
                                              std::span<const double> row, std::span<const double> change,
                                              std::size_t likeliest, const Progress& progress) {
  if (norm.groups != 1 || norm.elementwise()) {
    throw Error(ErrorCode::Unsupported, "not modelled: a final norm that is elementwise or has groups");
  }
  const std::size_t width = row.size();
  std::vector<double> rows(3 * width);
  const auto all = [&](std::size_t first, std::size_t count) {
    return MatrixView<double>(rows.data() + first * width, count, width);
  };
  for (std::size_t i = 0; i < width; ++i) {
    rows[i] = row[i];
    rows[width + i] = rows[2 * width + i] = row[i] + change[i];
  }
  norm::project(norm, all(0, 3), all(0, 3));
  double squares = 0.0;
  for (const double value : all(0, 1).row(0)) squares += value * value;
  const double sigma = std::sqrt(squares / norm.squared_radius() + norm.eps);
  norm::scale(norm, all(0, 2), all(0, 2));
  for (double& value : all(2, 1).row(0)) value = sigma > 0.0 ? value / sigma : 0.0;
  norm::stretch(norm, all(0, 3), all(0, 3));
  norm::shift(norm, all(0, 3), all(0, 3));
  const std::size_t vocabulary = decoder.vocabulary();
  std::vector<double> logits(3 * vocabulary);
  const MatrixView<double> probabilities(logits.data(), 3, vocabulary);
  decoder.logits(all(0, 3), probabilities, progress);
  for (std::size_t r = 0; r < 3; ++r) to_probabilities(probabilities.row(r));
  std::vector<std::size_t> tokens = largest(probabilities.row(1), likeliest);
  for (const std::size_t token : largest(probabilities.row(0), likeliest)) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  std::vector<ChangedToken> changed;
  for (const std::size_t token : tokens) {
    changed.push_back(
        {token, probabilities.row(0)[token], probabilities.row(1)[token], probabilities.row(2)[token]});
  }
  return changed;
}

std::vector<ObservedNorm> observed_norms(const TokenTrace& trace) {
  std::vector<ObservedNorm> norms;
  for (const TracedNorm& norm : trace.norms) {
    norms.push_back({trace.model->norms[norm.norm].name, norm.observer.spec(), 1, norm.observer.summary()});
  }
  return norms;
}

ObservedTokens observe_tokens(const files::Checkpoint& checkpoint, const models::Model& model,
                              std::span<const std::size_t> tokens, const ObserveOptions& options,
                              const Progress& progress) {
  const forward::Decoder decoder(checkpoint, model, options.threads);
  if (tokens.empty()) throw Error(ErrorCode::Argument, "the context has no tokens, expected at least one");
  ObservedTokens result;
  std::map<std::size_t, std::size_t> observer_of;  // by norm
  for (const std::size_t norm : decoder.norms()) {
    try {
      result.observers.emplace_back(models::read_norm(checkpoint, model.norms[norm]),
                                    ObserverOptions{.contexts = 2});
      observer_of.emplace(norm, result.observers.size() - 1);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unsupported && error.code() != ErrorCode::Argument) throw;
      result.not_understood.emplace_back(model.norms[norm].name, error.what());
    }
  }
  const std::size_t longest = std::min(decoder.positions(), longest_observed);
  const double of_token = static_cast<double>(model.parameters) + 2.0 * static_cast<double>(longest) *
                                                                      static_cast<double>(model.width) *
                                                                      model.layers;
  const double afforded = options.budget / of_token;
  result.tokens = afforded < static_cast<double>(tokens.size())
                      ? std::min(tokens.size(), std::max(least_observed, static_cast<std::size_t>(afforded)))
                      : tokens.size();
  std::uint64_t contexts = 0;
  for (std::size_t first = 0; first < result.tokens; ++contexts) {
    const std::size_t length = std::min(longest, result.tokens - first);
    (void)decoder.run(
        tokens.subspan(first, length),
        [&](std::size_t norm, MatrixView<const double> rows) {
          const auto at = observer_of.find(norm);
          if (at == observer_of.end()) return;
          result.observers[at->second].add(rows);
          result.observers[at->second].add_contexts(rows, rows.rows());
        },
        progress);
    first += length;
  }
  std::vector<WatchedNorm> watched;
  for (const auto& [norm, at] : observer_of) {
    const Observer& observer = result.observers[at];
    result.norms.push_back({model.norms[norm].name, observer.spec(), contexts, observer.summary()});
    watched.push_back({model.norms[norm].name, observer});
  }
  result.within = in_model(checkpoint, model, watched,
                           {.heads = {.budget = options.budget, .threads = options.threads},
                            .next = {.budget = options.budget, .threads = options.threads}},
                           progress);
  return result;
}

}  // namespace normscope::analysis
