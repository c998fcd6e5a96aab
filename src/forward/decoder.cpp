#include <normscope/forward/decoder.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/norm/kernels.hpp>

#include "attention.hpp"
#include "linear.hpp"
#include "plan.hpp"

namespace normscope::forward {
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
