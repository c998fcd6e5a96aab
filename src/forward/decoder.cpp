#include <normscope/forward/decoder.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "state.hpp"

namespace normscope::forward {

Decoder::State::State(const files::Checkpoint& file, const models::Model& described, unsigned thread_limit,
                      const PassOptions& options)
    : checkpoint(file),
      model(described),
      threads(thread_limit),
      disturbance(options.disturbance),
      plan(plan_of(described, options.encoders)) {
  for (const Step& step : plan.steps) norms.push_back(step.norm);
  has_logits = model.vocabulary && model.vocabulary->unembedding;
  vocabulary = has_logits ? model.vocabulary->size : static_cast<std::size_t>(plan.tokens->in);
  width = model.norms[norms.back()].width;
  if (plan.positions != nullptr) {
    const std::uint64_t rows = plan.positions->in;
    const std::uint64_t first = std::min(rows, model.decoder->first_position);
    positions = std::min<std::size_t>(positions, static_cast<std::size_t>(rows - first));
  }
  for (const models::Head& head : model.heads) {
    if (head.rotary && head.rotary->context != 0) positions = std::min(positions, head.rotary->context);
  }
  list_components();
}

void Decoder::State::list_components() {
  using Kind = Component::Kind;
  const Step& first_step = plan.steps.front();
  const bool is_normed = first_step.becomes_stream && !model.decoder->encodes;
  components.push_back({Kind::embedding, {}, {}, is_normed ? &model.norms[first_step.norm] : nullptr});
  if (plan.positions != nullptr) components.push_back({Kind::position});
  for (const Step& step : plan.steps) {
    starts.push_back(components.size());
    for (const Branch& branch : step.before) {
      const bool attends = !branch.heads.empty();
      const std::optional<int> layer = attends       ? model.heads[branch.heads.front()].layer
                                       : branch.norm ? model.norms[*branch.norm].layer
                                                     : branch.after->layer;
      const std::size_t first = components.size();
      for (const std::size_t head : branch.heads) {
        components.push_back({Kind::head, layer, model.heads[head].head, branch.after});
        const models::Linear& value = *model.heads[head].value;
        // Clamped values are not linear in the norm's output, and weights beside a sink do not add up to 1.
        if (model.heads[head].clip == 0.0 && !model.heads[head].sink) components.back().in = &value;
        components.back().first_input = (components.size() - 1 - first) * static_cast<std::size_t>(value.out);
      }
      if (!attends) {
        components.push_back({Kind::mlp, layer, {}, branch.after});
        components.back().in = branch.mlp.in;
        components.back().gate = branch.mlp.gate;
      }
      if (branch.has_bias()) {
        components.push_back({attends ? Kind::attention_bias : Kind::mlp_bias, layer, {}, branch.after});
      }
      for (std::size_t k = first; k < components.size(); ++k) {
        components[k].reads = branch.norm ? &model.norms[*branch.norm] : nullptr;
        components[k].out = branch.mlp.out;
      }
    }
  }
}

void Decoder::State::expect_tokens(std::span<const std::size_t> tokens) const {
  if (tokens.empty())
    throw Error(ErrorCode::Argument, "trace: the context has no tokens, expected at least one");
  if (tokens.size() > positions) {
    throw Error(ErrorCode::Argument, fmt::format("trace: the context has {} tokens, expected at most {}",
                                                 tokens.size(), positions));
  }
  const std::uint64_t known = std::min<std::uint64_t>(vocabulary, plan.tokens->in);
  for (const std::size_t token : tokens) {
    if (token < known) continue;
    throw Error(ErrorCode::Argument,
                fmt::format("trace: token {} is not in the vocabulary, expected 0 to {}", token, known - 1));
  }
}

std::string Component::name() const {
  switch (kind) {
    case Kind::embedding: return "embedding";
    case Kind::position: return "position";
    case Kind::head: return fmt::format("{}.{}", layer.value_or(0), head.value_or(0));
    case Kind::attention_bias: return fmt::format("{}.attention_bias", layer.value_or(0));
    case Kind::mlp: return fmt::format("{}.mlp", layer.value_or(0));
    case Kind::mlp_bias: return fmt::format("{}.mlp_bias", layer.value_or(0));
  }
  NORMSCOPE_ASSERT(false);
  return {};
}

Decoder::Decoder(const files::Checkpoint& checkpoint, const models::Model& model, unsigned threads,
                 const PassOptions& options)
    : state_(std::make_unique<const State>(checkpoint, model, threads, options)) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

std::size_t Decoder::vocabulary() const { return state_->vocabulary; }
bool Decoder::has_logits() const { return state_->has_logits; }
std::size_t Decoder::outputs() const { return has_logits() ? state_->vocabulary : state_->width; }
std::size_t Decoder::positions() const { return state_->positions; }
std::vector<double> Decoder::embedding(std::size_t token) const {
  const std::size_t tokens[] = {token};
  state_->expect_tokens(tokens);
  std::vector<double> row = state_->embedded(tokens);
  const models::Norm* const after = state_->components.front().after;
  return after == nullptr ? row : state_->output_of(*after, {row.data(), 1, row.size()});
}
std::vector<double> Decoder::position_embeddings() const {
  return state_->placed(std::vector<std::size_t>(state_->positions));
}
const std::vector<std::size_t>& Decoder::norms() const { return state_->norms; }

const std::vector<Component>& Decoder::components() const { return state_->components; }

namespace {

/// A pass that changes nothing.
template <typename State>
struct PlainPass {
  const State& state;
  const Observe& observe_rows;
  const AttentionObserver& attention;

  void enter(std::size_t /*step*/, std::vector<double>& /*stream*/, auto& /*normed*/) const {}
  void observe(std::size_t norm, MatrixView<const double> rows) const {
    if (observe_rows) observe_rows(norm, rows);
  }
  void add(const Branch& branch, MatrixView<const double> read, std::vector<double>& stream) const {
    state.add(branch, read, attention, stream);
  }
  [[nodiscard]] std::vector<double> output(std::size_t step, MatrixView<const double> rows) const {
    return state.output_of(state.model.norms[state.norms[step]], rows);
  }
};

}  // namespace

std::vector<double> Decoder::run(std::span<const std::size_t> tokens, const Observe& observe,
                                 const Progress& progress, const AttentionObserver& attention) const {
  const State& state = *state_;
  state.expect_tokens(tokens);
  std::vector<double> stream = state.embedded(tokens);
  const std::vector<double> placed = state.placed(tokens);
  for (std::size_t i = 0; i < placed.size(); ++i) stream[i] += placed[i];
  PlainPass<State> hooks{state, observe, attention};
  return state.pass(std::move(stream), hooks, progress);
}

void Decoder::logits(MatrixView<const double> hidden, MatrixView<double> logits,
                     const Progress& progress) const {
  if (!has_logits()) {
    for (std::size_t r = 0; r < hidden.rows(); ++r) {
      std::copy_n(hidden.row(r).begin(), hidden.width(), logits.row(r).begin());
    }
    return;
  }
  const models::Vocabulary& vocabulary = *state_->model.vocabulary;
  apply(state_->checkpoint, *vocabulary.unembedding, hidden, state_->threads, logits, progress,
        state_->disturbance);
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
