#include <normscope/forward/decoder.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/plan.hpp>
#include <normscope/models/model.hpp>
#include <normscope/norm/kernels.hpp>

#include "layers.hpp"

namespace normscope::forward {

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

namespace {

double gated(const models::ClampedGate& of, double gate, double in) {
  const double g = std::min(gate, of.limit);
  return (std::clamp(in, -of.limit, of.limit) + 1.0) * g / (1.0 + std::exp(-of.alpha * g));
}

}  // namespace

struct Decoder::State {
  const files::Checkpoint& checkpoint;
  const models::Model& model;
  unsigned threads;
  Disturbance disturbance;
  Plan plan;
  std::vector<std::size_t> norms{};
  std::vector<Component> components{};
  std::vector<std::size_t> starts{};  ///< of each step: the first of the components that it adds
  bool has_logits = false;
  std::size_t vocabulary = 0, positions = most_tokens, width = 0;

  State(const files::Checkpoint& file, const models::Model& described, unsigned thread_limit,
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

  void list_components() {
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
          components.back().first_input =
              (components.size() - 1 - first) * static_cast<std::size_t>(value.out);
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

  /// The bound of a norm's rounding has its width, for the sums; a gain is disturbed like a weight.
  void disturb_norm(const models::Norm& norm, MatrixView<double> rows) const {
    disturb(disturbance, norm.name, static_cast<std::ptrdiff_t>(width), change_of(disturbance, norm.name),
            rows);
  }

  /// What the token embedding gives the stream.
  [[nodiscard]] std::vector<double> embedded(std::span<const std::size_t> tokens) const {
    std::vector<double> rows(tokens.size() * width);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const std::vector<double> token = table_row(checkpoint, *plan.tokens, tokens[t], disturbance);
      for (std::size_t i = 0; i < width; ++i) rows[t * width + i] = model.decoder->embedding_scale * token[i];
    }
    return rows;
  }

  /// What the embeddings of positions and token types give it; empty without any.
  [[nodiscard]] std::vector<double> placed(std::span<const std::size_t> tokens) const {
    std::vector<double> rows;
    if (plan.positions == nullptr && plan.types == nullptr) return rows;
    rows.resize(tokens.size() * width);
    const auto add = [&](const models::Linear& table, std::size_t row, std::size_t t) {
      const std::vector<double> values = table_row(checkpoint, table, row, disturbance);
      for (std::size_t i = 0; i < width; ++i) rows[t * width + i] += values[i];
    };
    std::size_t next = static_cast<std::size_t>(model.decoder->first_position);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const bool is_padding = model.decoder->padding && tokens[t] == *model.decoder->padding;
      if (plan.positions != nullptr) {
        add(*plan.positions, is_padding ? static_cast<std::size_t>(*model.decoder->padding) : next, t);
      }
      if (!is_padding) ++next;
      if (plan.types != nullptr) add(*plan.types, 0, t);
    }
    return rows;
  }

  /// The activations of an MLP, which its output map reads.
  [[nodiscard]] std::vector<double> activations(const Mlp& mlp, MatrixView<const double> x) const {
    std::vector<double> inner = apply(checkpoint, *mlp.in, x, threads, disturbance);
    const models::Activation activation = *model.decoder->activation;
    if (mlp.gate != nullptr) {
      const std::vector<double> gate = apply(checkpoint, *mlp.gate, x, threads, disturbance);
      const std::optional<models::ClampedGate>& clamp = model.decoder->clamped_gate;
      for (std::size_t i = 0; i < inner.size(); ++i) {
        inner[i] = clamp ? gated(*clamp, gate[i], inner[i]) : inner[i] * activated(activation, gate[i]);
      }
    } else {
      for (double& value : inner) value = activated(activation, value);
    }
    disturb(disturbance, mlp.in->weight.selector(), 8, 0.0,
            {inner.data(), x.rows(), inner.size() / x.rows()});
    return inner;
  }

  [[nodiscard]] std::vector<double> output_of(const Mlp& mlp, MatrixView<const double> x) const {
    const std::vector<double> inner = activations(mlp, x);
    return apply(checkpoint, *mlp.out, {inner.data(), x.rows(), inner.size() / x.rows()}, threads,
                 disturbance);
  }

  /// The weights of experts for each row of x, 0 for those that it does not use.
  [[nodiscard]] std::vector<double> routed(const Experts& experts, MatrixView<const double> x) const {
    const models::Routing& routing = *model.decoder->routing;
    std::vector<double> weights = apply(checkpoint, *experts.router, x, threads, disturbance);
    const std::size_t count = experts.mlps.size();
    for (std::size_t r = 0; r < x.rows(); ++r) {
      const std::span<double> row(weights.data() + r * count, count);
      std::vector<double> ordered(row.begin(), row.end());
      std::sort(ordered.begin(), ordered.end(), std::greater<>());
      const double least = ordered[routing.used - 1];
      double all = 0.0, chosen = 0.0;
      std::size_t left = routing.used;
      for (double& weight : row) {
        const double exponential = std::exp(weight - ordered.front());
        all += exponential;
        // Of equal outputs the first are used.
        const bool is_used = weight >= least && left > 0;
        if (is_used) --left;
        weight = is_used ? exponential : 0.0;
        chosen += weight;
      }
      for (double& weight : row) weight /= routing.normalized ? chosen : all;
    }
    disturb(disturbance, experts.router->weight.selector(), 8, 0.0, {weights.data(), x.rows(), count});
    return weights;
  }

  [[nodiscard]] std::vector<double> output_of(const Experts& experts, MatrixView<const double> x) const {
    std::vector<double> output(x.rows() * width);
    const std::vector<double> weights = routed(experts, x);
    for (std::size_t e = 0; e < experts.mlps.size(); ++e) {
      std::vector<double> rows;
      std::vector<std::size_t> users;
      for (std::size_t r = 0; r < x.rows(); ++r) {
        if (weights[r * experts.mlps.size() + e] == 0.0) continue;
        users.push_back(r);
        rows.insert(rows.end(), x.row(r).begin(), x.row(r).end());
      }
      if (users.empty()) continue;
      const std::vector<double> part = output_of(experts.mlps[e], {rows.data(), users.size(), x.width()});
      for (std::size_t u = 0; u < users.size(); ++u) {
        const double weight = weights[users[u] * experts.mlps.size() + e];
        for (std::size_t i = 0; i < width; ++i) output[users[u] * width + i] += weight * part[u * width + i];
      }
    }
    if (!experts.shared) return output;
    const std::vector<double> part = output_of(*experts.shared, x);
    std::vector<double> gate;
    if (experts.shared_gate != nullptr)
      gate = apply(checkpoint, *experts.shared_gate, x, threads, disturbance);
    for (std::size_t i = 0; i < part.size(); ++i) {
      output[i] += gate.empty() ? part[i] : part[i] / (1.0 + std::exp(-gate[i / width]));
    }
    return output;
  }

  [[nodiscard]] std::vector<double> inner(const Branch& branch, MatrixView<const double> normed,
                                          const AttentionObserver& attention = {},
                                          const MatrixView<const double>* of_values = nullptr) const {
    return branch.heads.empty() ? activations(branch.mlp, normed)
                                : attended(checkpoint, model, branch.heads, normed, attention, threads,
                                           disturbance, of_values);
  }

  void add(const Branch& branch, MatrixView<const double> normed, const AttentionObserver& attention,
           std::vector<double>& stream) const {
    const std::size_t rows = normed.rows();
    std::vector<double> output;
    if (branch.experts.router != nullptr) {
      output = output_of(branch.experts, normed);
    } else {
      const std::vector<double> hidden = inner(branch, normed, attention);
      const MatrixView<const double> view(hidden.data(), rows, hidden.size() / rows);
      output = apply(checkpoint, *branch.mlp.out, view, threads, disturbance);
    }
    if (branch.after != nullptr) {
      const NormSpec after = models::read_norm(checkpoint, *branch.after);
      norm::normalize<double>(norm::view(after), {output.data(), rows, width}, {output.data(), rows, width},
                              threads);
      disturb_norm(*branch.after, {output.data(), rows, width});
    }
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += model.decoder->branch_scale * output[i];
  }

  /// The rows that each component of a branch computes; `of_values` as for `attended`.
  [[nodiscard]] std::vector<std::vector<double>> apart(
      const Branch& branch, MatrixView<const double> normed,
      const MatrixView<const double>* of_values = nullptr) const {
    if (branch.experts.router != nullptr) {
      std::vector<std::vector<double>> outputs = {output_of(branch.experts, normed)};
      if (branch.has_bias()) outputs.emplace_back(normed.rows() * width);
      return outputs;
    }
    const models::Linear& out = *branch.mlp.out;
    const std::size_t rows = normed.rows();
    const std::vector<double> hidden = inner(branch, normed, {}, of_values);
    const auto in = static_cast<std::size_t>(out.in);
    if (hidden.size() != rows * in) {
      throw Error(ErrorCode::Unsupported, fmt::format("not modelled: \"{}\" reads {} features, expected {}",
                                                      out.weight.selector(), in, hidden.size() / rows));
    }
    const std::size_t count = std::max<std::size_t>(1, branch.heads.size());
    const std::size_t dim = in / count;
    const std::vector<double> weight = models::read_weight(checkpoint, out, 0, width);
    std::vector<std::vector<double>> outputs(count, std::vector<double>(rows * width));
    for (std::size_t c = 0; c < count; ++c) {
      const MatrixView<const double> part(hidden.data() + c * dim, rows, dim, in);
      parallel_for(width, 64, threads, [&](std::size_t begin, std::size_t end) {
        const MatrixView<const double> map(weight.data() + begin * in + c * dim, end - begin, dim, in);
        multiply(part, Factor<double>(map).transposed(),
                 MatrixView<double>(outputs[c].data() + begin, rows, end - begin, width));
      });
    }
    if (!branch.has_bias()) return outputs;
    outputs.emplace_back(rows * width);
    const std::vector<double> bias = models::read_bias(checkpoint, out);
    for (std::size_t i = 0; i < outputs.back().size() && !bias.empty(); ++i) {
      outputs.back()[i] = bias[i % width];
    }
    return outputs;
  }

  /// Parts of a norm's output, of parts of its input.
  void pass_after(const Branch& branch, std::vector<double>& total,
                  std::vector<std::vector<double>>* parts) const {
    const NormSpec spec = models::read_norm(checkpoint, *branch.after);
    const std::size_t rows = total.size() / width;
    if (parts != nullptr && (spec.elementwise() || spec.groups != 1)) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("not modelled: components through {}, expected a norm with one divisor",
                              branch.after->name));
    }
    for (std::size_t t = 0; t < rows && parts != nullptr; ++t) {
      std::vector<double> row(total.data() + t * width, total.data() + (t + 1) * width);
      if (spec.centers()) center(row);
      const double divisor = std::sqrt(sum_of_squares(row) / spec.squared_radius() + spec.eps);
      for (std::vector<double>& part : *parts) {
        const std::span<double> of(part.data() + t * width, width);
        if (spec.centers()) center(of);
        for (std::size_t i = 0; i < width; ++i) of[i] *= spec.gain_at(i) / divisor;
      }
      for (std::size_t i = 0; i < width && !spec.bias.empty(); ++i) {
        parts->back()[t * width + i] += spec.bias[i];
      }
    }
    norm::normalize<double>(norm::view(spec), {total.data(), rows, width}, {total.data(), rows, width},
                            threads);
  }

  /// The output of a norm with its divisors for other rows.
  [[nodiscard]] std::vector<double> frozen_output(const models::Norm& norm, MatrixView<const double> x,
                                                  const std::vector<double>& of) const {
    const NormSpec spec = models::read_norm(checkpoint, norm);
    if (spec.elementwise() || spec.groups != 1) {
      throw Error(
          ErrorCode::Unsupported,
          fmt::format("not modelled: {} with its divisors kept, expected a norm with one", norm.name));
    }
    std::vector<double> output(x.data(), x.data() + of.size());
    for (std::size_t t = 0; t < x.rows(); ++t) {
      std::vector<double> row(of.data() + t * width, of.data() + (t + 1) * width);
      const std::span<double> y(output.data() + t * width, width);
      if (spec.centers()) center(row), center(y);
      const double divisor = std::sqrt(sum_of_squares(row) / spec.squared_radius() + spec.eps);
      for (std::size_t i = 0; i < width; ++i) y[i] = y[i] / divisor * spec.gain_at(i) + spec.bias_at(i);
    }
    return output;
  }

  /// What an MLP added that alone stands between two norms of the stream.
  [[nodiscard]] std::optional<std::vector<double>> kept_output(
      const Branch& branch, std::size_t step, const std::vector<std::vector<double>>& entered) const {
    if (!branch.heads.empty() || plan.steps[step].becomes_stream || plan.steps[step + 1].before.size() != 1) {
      return std::nullopt;
    }
    std::vector<double> output = entered[step + 1];
    for (std::size_t i = 0; i < output.size(); ++i) output[i] -= entered[step][i];
    return output;
  }

  /// As `add_apart`, with attention, MLPs and the divisor of the branch's norm as for the output `kept` of
  /// the norm that the branch reads.
  void add_frozen(const Branch& branch, std::size_t first, const Apart& hooks,
                  MatrixView<const double> normed, std::vector<double>& stream) const {
    const double scale = model.decoder->branch_scale;
    const std::size_t step = step_behind(branch.norm);
    if (step + 1 >= norms.size()) {
      throw Error(ErrorCode::Unsupported, "not modelled: a freeze of branches that read the stream itself");
    }
    if (auto output = kept_output(branch, step, *hooks.entered)) {
      for (std::size_t c = 0; c < branch.components(); ++c) {
        if (hooks.change) hooks.change(first + c, {output->data(), normed.rows(), width});
      }
      for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += (*output)[i];
      return;
    }
    const std::vector<double>& rows = (*hooks.entered)[step];
    const std::vector<double> read = output_of(model.norms[norms[step]], {rows.data(), normed.rows(), width});
    const MatrixView<const double> kept(read.data(), normed.rows(), width);
    std::vector<std::vector<double>> parts = apart(branch, kept, &normed);
    if (branch.after != nullptr) {
      std::vector<double> total(stream.size());
      for (const std::vector<double>& part : apart(branch, kept)) {
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += part[i];
      }
      pass_after(branch, total, &parts);
    }
    for (std::size_t c = 0; c < parts.size(); ++c) {
      for (double& value : parts[c]) value *= scale;
      if (hooks.change) hooks.change(first + c, {parts[c].data(), normed.rows(), width});
      for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += parts[c][i];
    }
  }

  /// As `add`, of the components from `first` on.
  void add_apart(const Branch& branch, std::size_t first, const Apart& hooks, MatrixView<const double> normed,
                 std::vector<double>& stream) const {
    if (hooks.frozen) {
      add_frozen(branch, first, hooks, normed, stream);
      return;
    }
    std::vector<std::vector<double>> parts = apart(branch, normed);
    std::vector<double> total(stream.size());
    for (std::size_t c = 0; c < parts.size(); ++c) {
      if (hooks.change) hooks.change(first + c, {parts[c].data(), normed.rows(), width});
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += parts[c][i];
    }
    if (branch.after != nullptr) pass_after(branch, total, hooks.collect ? &parts : nullptr);
    const double scale = model.decoder->branch_scale;
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += scale * total[i];
    for (std::size_t c = 0; c < parts.size() && hooks.collect; ++c) {
      for (double& value : parts[c]) value *= scale;
      hooks.collect(first + c, {parts[c].data(), normed.rows(), width});
    }
  }

  /// Adds an embedding, unless there is none.
  void begin(std::size_t component, std::vector<double> rows, const Apart& hooks,
             std::vector<double>& stream) const {
    if (rows.empty()) return;
    const MatrixView<double> view(rows.data(), rows.size() / width, width);
    if (hooks.change) hooks.change(component, view);
    if (hooks.collect) {
      const models::Norm* const after = components[component].after;
      const std::vector<double> normed = after == nullptr ? rows : output_of(*after, view);
      hooks.collect(component, {normed.data(), view.rows(), width});
    }
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += rows[i];
  }

  /// What a language head makes of the last hidden states before its own norm.
  [[nodiscard]] std::vector<double> transformed(const models::Linear& transform,
                                                const std::vector<double>& hidden, std::size_t rows) const {
    std::vector<double> result =
        apply(checkpoint, transform, {hidden.data(), rows, hidden.size() / rows}, threads, disturbance);
    if (result.size() != hidden.size()) {
      throw Error(ErrorCode::Unsupported, fmt::format("not modelled: \"{}\", to {} features",
                                                      transform.weight.selector(), transform.out));
    }
    const models::Activation activation = model.decoder->head_activation.value_or(*model.decoder->activation);
    for (double& value : result) value = activated(activation, value);
    return result;
  }

  /// The step that adds a component; 0 for an embedding.
  [[nodiscard]] std::size_t step_of(std::size_t component) const {
    const auto behind = std::upper_bound(starts.begin(), starts.end(), component);
    // Of steps that add nothing, the last has the number of the next component too.
    const auto step = static_cast<std::size_t>(behind - starts.begin());
    return component < starts.front() ? 0 : step - 1;
  }

  /// The step that ends with a norm; the number of steps for none.
  [[nodiscard]] std::size_t step_behind(const auto& norm) const {
    return static_cast<std::size_t>(std::find(norms.begin(), norms.end(), norm) - norms.begin());
  }

  [[nodiscard]] std::vector<double> output_of(const models::Norm& norm, MatrixView<const double> x) const {
    const NormSpec spec = models::read_norm(checkpoint, norm);
    std::vector<double> output(x.rows() * width);
    const MatrixView<double> view(output.data(), x.rows(), width);
    norm::normalize<double>(norm::view(spec), x, view, threads);
    disturb_norm(norm, view);
    return output;
  }

  /// The outputs of norms that open branches read: those of two norms beside each other at most.
  using Normed = std::map<std::size_t, std::vector<double>>;

  /// What a pass has in front of step `first`, of the rows that entered the norms before.
  [[nodiscard]] Normed resumed(const std::vector<std::vector<double>>& entered, std::size_t first,
                               std::vector<double>& stream) const {
    Normed normed;
    for (std::size_t s = first; s > 0; --s) {
      const Step& step = plan.steps[s - 1];
      const std::vector<double>& rows = entered[s - 1];
      normed[step.norm] = output_of(model.norms[step.norm], {rows.data(), rows.size() / width, width});
      if (s == first) stream = step.becomes_stream ? normed[step.norm] : rows;
      if (!step.before.empty()) break;
    }
    return normed;
  }

  /// Goes through the norms from step `first` on; `add_branch` adds one branch to the stream. The output of
  /// the final norm. Norms have their divisors for the rows of `kept` where that is given.
  template <typename Add>
  [[nodiscard]] std::vector<double> pass(std::vector<double> stream, const Observe& observe,
                                         const Add& add_branch, const Progress& progress,
                                         std::size_t first = 0, Normed normed = {},
                                         const std::vector<std::vector<double>>* kept = nullptr) const {
    const std::size_t rows = stream.size() / width;
    for (std::size_t s = first; s < plan.steps.size(); ++s) {
      progress("norms", s, plan.steps.size());
      const Step& step = plan.steps[s];
      for (const Branch& branch : step.before) {
        std::vector<double> read;
        if (!branch.norm) {
          read = stream;
          disturb(disturbance, "stream of " + branch.after->name, 0, rounding(4), {read.data(), rows, width});
        }
        const std::vector<double>& x = branch.norm ? normed.at(*branch.norm) : read;
        add_branch(branch, MatrixView<const double>(x.data(), rows, width), stream);
      }
      if (step.transform != nullptr) stream = transformed(*step.transform, normed.begin()->second, rows);
      if (!step.before.empty()) normed.clear();
      // The sums of the stream: each entry by its own rounding.
      disturb(disturbance, "stream of " + model.norms[step.norm].name, 0, rounding(4),
              {stream.data(), rows, width});
      if (observe) observe(step.norm, {stream.data(), rows, width});
      const MatrixView<const double> x(stream.data(), rows, width);
      normed[step.norm] = kept != nullptr ? frozen_output(model.norms[step.norm], x, (*kept)[s])
                                          : output_of(model.norms[step.norm], x);
      if (step.becomes_stream) stream = normed[step.norm];
    }
    return std::move(normed.at(norms.back()));
  }
};

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

std::vector<double> Decoder::run(std::span<const std::size_t> tokens, const Observe& observe,
                                 const Progress& progress, const AttentionObserver& attention) const {
  const State& state = *state_;
  state.expect_tokens(tokens);
  std::vector<double> stream = state.embedded(tokens);
  const std::vector<double> placed = state.placed(tokens);
  for (std::size_t i = 0; i < placed.size(); ++i) stream[i] += placed[i];
  return state.pass(
      std::move(stream), observe,
      [&](const Branch& branch, MatrixView<const double> normed, std::vector<double>& sum) {
        state.add(branch, normed, attention, sum);
      },
      progress);
}

std::vector<double> Decoder::run_apart(std::span<const std::size_t> tokens, const Apart& apart,
                                       const Progress& progress) const {
  const State& state = *state_;
  state.expect_tokens(tokens);
  NORMSCOPE_ASSERT(!apart.frozen || (apart.entered != nullptr && apart.first == 0));
  const std::size_t first = apart.entered != nullptr ? state.step_of(apart.first) : 0;
  std::vector<double> stream(tokens.size() * state.width);
  State::Normed normed;
  if (first == 0) {
    state.begin(0, state.embedded(tokens), apart, stream);
    state.begin(1, state.placed(tokens), apart, stream);
  } else {
    normed = state.resumed(*apart.entered, first, stream);
  }
  std::size_t next = state.starts[first];
  return state.pass(
      std::move(stream), apart.observe,
      [&](const Branch& branch, MatrixView<const double> rows, std::vector<double>& sum) {
        state.add_apart(branch, next, apart, rows, sum);
        next += branch.components();
      },
      progress, first, std::move(normed), apart.frozen ? apart.entered : nullptr);
}

double Decoder::share_behind(std::size_t component) const {
  const auto steps = static_cast<double>(state_->plan.steps.size());
  return (steps - static_cast<double>(state_->step_of(component))) / steps;
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
