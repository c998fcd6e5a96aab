#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/norm/kernels.hpp>

#include "state.hpp"

// What embeddings, norms, attention and MLPs compute.
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

void Decoder::State::disturb_norm(const models::Norm& norm, MatrixView<double> rows) const {
  disturb(disturbance, norm.name, static_cast<std::ptrdiff_t>(width), change_of(disturbance, norm.name),
          rows);
}

std::vector<double> Decoder::State::embedded(std::span<const std::size_t> tokens) const {
  std::vector<double> rows(tokens.size() * width);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::vector<double> token = table_row(checkpoint, *plan.tokens, tokens[t], disturbance);
    for (std::size_t i = 0; i < width; ++i) rows[t * width + i] = model.decoder->embedding_scale * token[i];
  }
  return rows;
}

std::vector<double> Decoder::State::placed(std::span<const std::size_t> tokens) const {
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

std::vector<double> Decoder::State::output_of(const models::Norm& norm, MatrixView<const double> x) const {
  const NormSpec spec = models::read_norm(checkpoint, norm);
  std::vector<double> output(x.rows() * width);
  const MatrixView<double> view(output.data(), x.rows(), width);
  norm::normalize<double>(norm::view(spec), x, view, threads);
  disturb_norm(norm, view);
  return output;
}

std::vector<double> Decoder::State::activations(const Mlp& mlp, MatrixView<const double> x) const {
  std::vector<double> inner = apply(checkpoint, *mlp.in, x, threads, disturbance);
  const models::Activation activation = *model.decoder->activation;
  const std::optional<models::ClampedGate>& clamp = model.decoder->clamped_gate;
  std::vector<double> gate;
  if (mlp.gate != nullptr) gate = apply(checkpoint, *mlp.gate, x, threads, disturbance);
  parallel_for(inner.size(), 4096, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      inner[i] = gate.empty() ? activated(activation, inner[i])
                 : clamp      ? gated(*clamp, gate[i], inner[i])
                              : inner[i] * activated(activation, gate[i]);
    }
  });
  disturb(disturbance, mlp.in->weight.selector(), 8, 0.0, {inner.data(), x.rows(), inner.size() / x.rows()});
  return inner;
}

std::vector<double> Decoder::State::output_of(const Mlp& mlp, MatrixView<const double> x) const {
  const std::vector<double> inner = activations(mlp, x);
  return apply(checkpoint, *mlp.out, {inner.data(), x.rows(), inner.size() / x.rows()}, threads, disturbance);
}

namespace {

constexpr double unit = 1.0;

/// Scores of experts in place of the router's outputs.
void score(const models::Routing& routing, std::span<double> outputs) {
  if (routing.sigmoid) {
    for (double& output : outputs) output = 1.0 / (1.0 + std::exp(-output));
    return;
  }
  const double largest = *std::max_element(outputs.begin(), outputs.end());
  double sum = 0.0;
  for (double& output : outputs) sum += output = std::exp(output - largest);
  for (double& output : outputs) output /= sum;
}

}  // namespace

std::vector<double> Decoder::State::routed(const Experts& experts, MatrixView<const double> x) const {
  const models::Routing& routing = *model.decoder->routing;
  std::vector<double> weights = apply(checkpoint, *experts.router, x, threads, disturbance);
  const std::size_t count = experts.mlps.size();
  std::vector<double> correction;
  if (experts.correction != nullptr) {
    // A map of one input, so that it is disturbed as other weights are.
    const MatrixView<const double> one(&unit, 1, 1);
    correction = apply(checkpoint, *experts.correction, one, threads, disturbance);
  }
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const std::span<double> row(weights.data() + r * count, count);
    // The order of outputs is that of scores, also where these are rounded to equal numbers.
    std::vector<double> order(row.begin(), row.end());
    score(routing, row);
    for (std::size_t e = 0; e < correction.size(); ++e) order[e] = row[e] + correction[e];
    std::vector<double> ordered = order;
    std::sort(ordered.begin(), ordered.end(), std::greater<>());
    const double least = ordered[routing.used - 1];
    std::size_t left = routing.used;
    double chosen = 0.0;
    for (std::size_t e = 0; e < count; ++e) {
      // The first of equal ones are used.
      const bool is_used = order[e] >= least && left > 0;
      if (is_used) --left;
      if (!is_used) row[e] = 0.0;
      chosen += row[e];
    }
    const double factor = routing.scale / (routing.normalized ? std::max(chosen, routing.least_sum) : 1.0);
    for (double& weight : row) weight *= factor;
  }
  disturb(disturbance, experts.router->weight.selector(), 8, 0.0, {weights.data(), x.rows(), count});
  return weights;
}

std::vector<double> Decoder::State::output_of(const Experts& experts, MatrixView<const double> x) const {
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
  if (experts.shared_gate != nullptr) gate = apply(checkpoint, *experts.shared_gate, x, threads, disturbance);
  for (std::size_t i = 0; i < part.size(); ++i) {
    output[i] += gate.empty() ? part[i] : part[i] / (1.0 + std::exp(-gate[i / width]));
  }
  return output;
}

void Decoder::State::add(const Branch& branch, MatrixView<const double> normed,
                         const AttentionObserver& attention, std::vector<double>& stream) const {
  const std::size_t rows = normed.rows();
  std::vector<double> output;
  if (branch.experts.router != nullptr) {
    output = output_of(branch.experts, normed);
  } else {
    const std::vector<double> hidden =
        branch.heads.empty()
            ? activations(branch.mlp, normed)
            : attended(checkpoint, model, branch.heads, {.rows = normed}, attention, threads, disturbance);
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

std::vector<double> Decoder::State::transformed(const models::Linear& transform,
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

}  // namespace normscope::forward
