#include <normscope/forward/decoder.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/norm/kernels.hpp>

#include "plan.hpp"

namespace normscope::forward {

/// y = W x + b for each row of x, in blocks of outputs, so that few weights are in memory.
///
/// Shapes    x (rows, map.in), y (rows, map.out)
///
/// Errors    Unsupported for x of another width; as `models::read_weight`; Cancelled
void apply(const files::Checkpoint& checkpoint, const models::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress = {});

/// The products of a map with rows of `x`, row-major.
[[nodiscard]] std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                                        MatrixView<const double> x, unsigned threads);

/// Row `index` of an embedding.
///
/// Errors    as `models::read_weight`
[[nodiscard]] std::vector<double> table_row(const files::Checkpoint& checkpoint, const models::Linear& table,
                                            std::size_t index);

namespace {

/// Queries, keys or values of some heads, side by side: (tokens, parts × dim).
struct Parts {
  std::size_t rows = 0;
  std::size_t dim = 0;
  std::vector<const models::Linear*> maps{};
  std::vector<double> values{};

  [[nodiscard]] std::size_t width() const { return maps.size() * dim; }
  [[nodiscard]] MatrixView<double> all() { return {values.data(), rows, width()}; }
  [[nodiscard]] MatrixView<double> of(std::size_t part) {
    return {values.data() + part * dim, rows, dim, width()};
  }
};

Parts projected(const files::Checkpoint& checkpoint, std::vector<const models::Linear*> maps,
                MatrixView<const double> normed, unsigned threads) {
  Parts parts{.rows = normed.rows(), .dim = static_cast<std::size_t>(maps.front()->out)};
  parts.maps = std::move(maps);
  parts.values.resize(parts.rows * parts.width());
  for (std::size_t i = 0; i < parts.maps.size(); ++i) {
    apply(checkpoint, *parts.maps[i], normed, threads, parts.of(i));
  }
  return parts;
}

void pass_own_norms(const files::Checkpoint& checkpoint, const models::Model& model, Parts& parts) {
  for (std::size_t i = 0; i < parts.maps.size(); ++i) {
    const models::Norm* const own = models::own_norm(model, *parts.maps[i]);
    if (own == nullptr) continue;
    const NormSpec spec = models::read_norm(checkpoint, *own);
    const bool is_of_head = spec.width == parts.dim;
    if (!is_of_head && spec.width != parts.width()) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("not modelled: {}, of {} features", own->name, spec.width));
    }
    const MatrixView<double> rows = is_of_head ? parts.of(i) : parts.all();
    norm::normalize<double>(norm::view(spec), rows, rows, 1);
    if (!is_of_head) return;
  }
}

/// Rotates queries or keys; `heads` are those of the parts.
void turn(const std::vector<const models::Head*>& heads, bool are_queries, Parts& parts) {
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (!heads[i]->rotary) continue;
    const models::Rotary& rotary = *heads[i]->rotary;
    for (std::size_t t = 0; t < parts.rows; ++t) {
      const std::span<double> part = parts.of(i).row(t);
      models::rotate(rotary, t, part);
      for (std::size_t j = 0; are_queries && j < rotary.dims; ++j) part[j] *= rotary.score_factor;
    }
  }
}

/// Attention weights of a query in place of its scores, of the positions up to its own.
void softmax(std::span<double> scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score - most);
  for (double& score : scores) score /= sum;
}

void attend(const models::Head& head, MatrixView<const double> queries, MatrixView<const double> keys,
            MatrixView<const double> values, MatrixView<double> output) {
  const std::size_t rows = queries.rows();
  std::vector<double> scores(rows);
  for (std::size_t t = 0; t < rows; ++t) {
    const std::size_t window = head.window.value_or(rows);
    const std::size_t first = t + 1 > window ? t + 1 - window : 0;
    const std::size_t count = t + 1 - first;
    const MatrixView<double> row(scores.data(), 1, count);
    multiply(
        MatrixView<const double>(queries.row(t).data(), 1, queries.width()),
        Factor<double>(MatrixView<const double>(keys.row(first).data(), count, keys.width(), keys.stride()))
            .transposed(),
        row);
    for (double& score : row.row(0)) {
      score *= head.scale;
      if (head.soft_cap > 0.0) score = head.soft_cap * std::tanh(score / head.soft_cap);
    }
    softmax(row.row(0));
    multiply(row, MatrixView<const double>(values.row(first).data(), count, values.width(), values.stride()),
             MatrixView<double>(output.row(t).data(), 1, output.width()));
  }
}

/// Causal attention of `heads`, indices in `model.heads`, over the outputs of the norm that they read: the
/// sums of values, head after head, row-major.
///
/// Shapes    normed (tokens, width)
///
/// Errors    as `models::read_weight`; Unsupported for norms of queries or keys that are neither of a head
///           nor of all heads
std::vector<double> attended(const files::Checkpoint& checkpoint, const models::Model& model,
                             std::span<const std::size_t> heads, MatrixView<const double> normed,
                             unsigned threads) {
  std::vector<const models::Head*> all;
  std::vector<const models::Head*> sharing;  // the first head of each key
  std::vector<const models::Linear*> query_maps;
  std::vector<const models::Linear*> key_maps;
  std::vector<const models::Linear*> value_maps;
  std::vector<std::size_t> key_of;
  for (const std::size_t index : heads) {
    const models::Head& head = model.heads[index];
    all.push_back(&head);
    query_maps.push_back(&*head.query);
    const auto known = std::find_if(sharing.begin(), sharing.end(), [&](const models::Head* other) {
      return other->key_value_head == head.key_value_head;
    });
    key_of.push_back(static_cast<std::size_t>(known - sharing.begin()));
    if (known != sharing.end()) continue;
    sharing.push_back(&head);
    key_maps.push_back(&*head.key);
    value_maps.push_back(&*head.value);
  }
  Parts queries = projected(checkpoint, std::move(query_maps), normed, threads);
  Parts keys = projected(checkpoint, std::move(key_maps), normed, threads);
  Parts values = projected(checkpoint, std::move(value_maps), normed, threads);
  pass_own_norms(checkpoint, model, queries);
  pass_own_norms(checkpoint, model, keys);
  turn(all, true, queries);
  turn(sharing, false, keys);
  Parts result{
      .rows = normed.rows(), .dim = values.dim, .maps = std::vector<const models::Linear*>(all.size())};
  result.values.resize(result.rows * result.width());
  parallel_for(all.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      attend(*all[i], queries.of(i), keys.of(key_of[i]), values.of(key_of[i]), result.of(i));
    }
  });
  return std::move(result.values);
}

/// Weights that are in memory together.
constexpr std::size_t most_weights = std::size_t{1} << 24;

}  // namespace

void apply(const files::Checkpoint& checkpoint, const models::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress) {
  if (x.width() != map.in) {
    throw Error(ErrorCode::Unsupported, fmt::format("not modelled: \"{}\" reads {} features, expected {}",
                                                    map.weight.selector(), map.in, x.width()));
  }
  const std::vector<double> bias = models::read_bias(checkpoint, map);
  const auto outputs = static_cast<std::size_t>(map.out);
  const std::size_t block = std::max<std::size_t>(1, most_weights / std::max<std::size_t>(1, x.width()));
  for (std::size_t first = 0; first < outputs; first += block) {
    progress("weights", first, outputs);
    const std::size_t count = std::min(block, outputs - first);
    const std::vector<double> weight = models::read_weight(checkpoint, map, first, count);
    parallel_for(count, 64, threads, [&](std::size_t begin, std::size_t end) {
      const MatrixView<const double> part(weight.data() + begin * x.width(), end - begin, x.width());
      multiply(x, Factor<double>(part).transposed(),
               MatrixView<double>(y.data() + first + begin, x.rows(), end - begin, y.stride()));
    });
  }
  for (std::size_t r = 0; r < x.rows() && !bias.empty(); ++r) {
    const std::span<double> row = y.row(r);
    for (std::size_t i = 0; i < outputs; ++i) row[i] += bias[i];
  }
}

std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                          MatrixView<const double> x, unsigned threads) {
  const auto outputs = static_cast<std::size_t>(map.out);
  std::vector<double> y(x.rows() * outputs);
  apply(checkpoint, map, x, threads, {y.data(), x.rows(), outputs});
  return y;
}

std::vector<double> table_row(const files::Checkpoint& checkpoint, const models::Linear& table,
                              std::size_t index) {
  models::Linear row = table;
  row.weight.offset += index * table.out;
  row.layout = models::Layout::out_in;
  row.in = table.out;
  row.out = row.stored_out = 1;
  return models::read_weight(checkpoint, row, 0, 1);
}

namespace {

double activated(models::Activation activation, double x) {
  constexpr double root_half = 0.70710678118654752440;         // 1/√2
  constexpr double root_two_over_pi = 0.79788456080286535588;  // √(2/π)
  switch (activation) {
    case models::Activation::gelu: return 0.5 * x * (1.0 + std::erf(x * root_half));
    case models::Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(root_two_over_pi * (x + 0.044715 * x * x * x)));
    case models::Activation::silu: return x / (1.0 + std::exp(-x));
    case models::Activation::relu: return std::max(x, 0.0);
    case models::Activation::squared_relu: return std::max(x, 0.0) * std::max(x, 0.0);
  }
  NORMSCOPE_ASSERT(false);
  return 0.0;
}

}  // namespace

struct Decoder::State {
  const files::Checkpoint& checkpoint;
  const models::Model& model;
  unsigned threads;
  Plan plan;
  std::vector<std::size_t> norms{};
  std::size_t vocabulary = 0, positions = most_tokens, width = 0;

  State(const files::Checkpoint& file, const models::Model& described, unsigned thread_limit)
      : checkpoint(file), model(described), threads(thread_limit), plan(plan_of(described)) {
    for (const Step& step : plan.steps) norms.push_back(step.norm);
    vocabulary = model.vocabulary->size;
    width = model.norms[norms.back()].width;
    if (plan.positions != nullptr) {
      const std::uint64_t rows = plan.positions->in;
      const std::uint64_t first = std::min(rows, model.decoder->first_position);
      positions = std::min<std::size_t>(positions, static_cast<std::size_t>(rows - first));
    }
    for (const models::Head& head : model.heads) {
      if (head.rotary && head.rotary->context != 0) positions = std::min(positions, head.rotary->context);
    }
  }

  void expect_tokens(std::span<const std::size_t> tokens) const {
    if (tokens.empty())
      throw Error(ErrorCode::Argument, "trace: the context has no tokens, expected at least one");
    if (tokens.size() > positions) {
      throw Error(ErrorCode::Argument, fmt::format("trace: the context has {} tokens, expected at most {}",
                                                   tokens.size(), positions));
    }
    const std::uint64_t known = std::min<std::uint64_t>(vocabulary, plan.tokens->in);
    for (const std::size_t token : tokens) {
      if (token < known) continue;
      throw Error(
          ErrorCode::Argument,
          fmt::format("trace: token {} is not in the vocabulary, expected 0 to {}", token, known - 1));
    }
  }

  [[nodiscard]] std::vector<double> embedded(std::span<const std::size_t> tokens) const {
    std::vector<double> rows(tokens.size() * width);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const std::vector<double> token = table_row(checkpoint, *plan.tokens, tokens[t]);
      for (std::size_t i = 0; i < width; ++i) rows[t * width + i] = model.decoder->embedding_scale * token[i];
      if (plan.positions == nullptr) continue;
      const std::vector<double> place =
          table_row(checkpoint, *plan.positions, t + static_cast<std::size_t>(model.decoder->first_position));
      for (std::size_t i = 0; i < width; ++i) rows[t * width + i] += place[i];
    }
    return rows;
  }

  [[nodiscard]] std::vector<double> mlp(const Branch& branch, MatrixView<const double> x) const {
    std::vector<double> inner = apply(checkpoint, *branch.in, x, threads);
    const models::Activation activation = *model.decoder->activation;
    if (branch.gate != nullptr) {
      const std::vector<double> gate = apply(checkpoint, *branch.gate, x, threads);
      for (std::size_t i = 0; i < inner.size(); ++i) inner[i] *= activated(activation, gate[i]);
    } else {
      for (double& value : inner) value = activated(activation, value);
    }
    return inner;
  }

  void add(const Branch& branch, MatrixView<const double> normed, std::vector<double>& stream) const {
    const std::size_t rows = normed.rows();
    const std::vector<double> inner = branch.heads.empty()
                                          ? mlp(branch, normed)
                                          : attended(checkpoint, model, branch.heads, normed, threads);
    const MatrixView<const double> view(inner.data(), rows, inner.size() / rows);
    std::vector<double> output = apply(checkpoint, *branch.out, view, threads);
    if (branch.after != nullptr) {
      const NormSpec after = models::read_norm(checkpoint, *branch.after);
      norm::normalize<double>(norm::view(after), {output.data(), rows, width}, {output.data(), rows, width},
                              threads);
    }
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += model.decoder->branch_scale * output[i];
  }
};

Decoder::Decoder(const files::Checkpoint& checkpoint, const models::Model& model, unsigned threads)
    : state_(std::make_unique<const State>(checkpoint, model, threads)) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

std::size_t Decoder::vocabulary() const { return state_->vocabulary; }
std::size_t Decoder::positions() const { return state_->positions; }
const std::vector<std::size_t>& Decoder::norms() const { return state_->norms; }

std::vector<double> Decoder::run(std::span<const std::size_t> tokens, const Observe& observe,
                                 const Progress& progress) const {
  const State& state = *state_;
  state.expect_tokens(tokens);
  const std::size_t rows = tokens.size();
  std::vector<double> stream = state.embedded(tokens);
  // The outputs of norms that open branches read: those of two norms beside each other at most.
  std::map<std::size_t, std::vector<double>> normed;
  for (std::size_t s = 0; s < state.plan.steps.size(); ++s) {
    progress("norms", s, state.plan.steps.size());
    const Step& step = state.plan.steps[s];
    for (const Branch& branch : step.before) {
      state.add(branch, {normed.at(branch.norm).data(), rows, state.width}, stream);
    }
    if (!step.before.empty()) normed.clear();
    if (observe) observe(step.norm, {stream.data(), rows, state.width});
    const NormSpec spec = models::read_norm(state.checkpoint, state.model.norms[step.norm]);
    std::vector<double>& output = normed[step.norm];
    output.resize(stream.size());
    norm::normalize<double>(norm::view(spec), {stream.data(), rows, state.width},
                            {output.data(), rows, state.width}, state.threads);
  }
  return std::move(normed.at(state.norms.back()));
}

void Decoder::logits(MatrixView<const double> hidden, MatrixView<double> logits,
                     const Progress& progress) const {
  const models::Vocabulary& vocabulary = *state_->model.vocabulary;
  apply(state_->checkpoint, *vocabulary.unembedding, hidden, state_->threads, logits, progress);
  for (std::size_t r = 0; r < logits.rows(); ++r) {
    for (double& logit : logits.row(r)) {
      logit *= vocabulary.logit_scale;
      if (vocabulary.soft_cap > 0.0) logit = vocabulary.soft_cap * std::tanh(logit / vocabulary.soft_cap);
    }
  }
}

namespace {

Prediction prediction_of(std::span<const double> logits, std::size_t count, const std::size_t* next) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - most);
  const auto continuation = [&](std::size_t token) {
    return Continuation{token, logits[token], std::exp(logits[token] - most) / sum};
  };
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](std::size_t a, std::size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  Prediction prediction;
  for (auto at = order.begin(); at != order.begin() + kept; ++at) {
    prediction.likeliest.push_back(continuation(*at));
  }
  if (next != nullptr) {
    prediction.next = continuation(*next);
    prediction.rank = static_cast<std::size_t>(
        std::count_if(logits.begin(), logits.end(), [&](double logit) { return logit > logits[*next]; }));
  }
  return prediction;
}

/// Logits that are in memory together.
constexpr std::size_t most_logits = std::size_t{1} << 24;

}  // namespace

std::vector<Prediction> Decoder::predict(std::span<const std::size_t> tokens, std::span<const double> hidden,
                                         std::size_t likeliest, const Progress& progress) const {
  NORMSCOPE_ASSERT(hidden.size() == tokens.size() * state_->width);
  std::vector<Prediction> predictions(tokens.size());
  const std::size_t together =
      std::min(tokens.size(), std::max<std::size_t>(1, most_logits / state_->vocabulary));
  std::vector<double> values(together * state_->vocabulary);
  for (std::size_t first = 0; first < tokens.size(); first += together) {
    const std::size_t count = std::min(together, tokens.size() - first);
    const MatrixView<double> rows(values.data(), count, state_->vocabulary);
    logits({hidden.data() + first * state_->width, count, state_->width}, rows, progress);
    parallel_for(count, 1, state_->threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        const std::size_t t = first + r;
        const std::size_t* const next = t + 1 < tokens.size() ? &tokens[t + 1] : nullptr;
        predictions[t] = prediction_of(rows.row(r), likeliest, next);
      }
    });
  }
  return predictions;
}

}  // namespace normscope::forward
