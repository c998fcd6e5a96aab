#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <Eigen/Dense>

#include <normscope/core/random.hpp>
#include <normscope/heads/attention.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::heads {

/// A head with a rotary embedding, and its scores by their definition.
struct RotaryCase {
  NormSpec norm;
  std::size_t dim = 4;
  std::vector<double> query, query_bias, key, key_bias, frequencies;
  Rotation rotation;
  std::size_t context = 0;
  std::size_t window = 0;
  double soft_cap = 0.0;
  bool has_own_norms = false;
  NormSpec query_norm, key_norm;

  [[nodiscard]] HeadMaps maps() const {
    return {.query = {query.data(), dim, norm.width},
            .query_bias = query_bias,
            .key = {key.data(), dim, norm.width},
            .key_bias = key_bias,
            .scale = 1.0 / std::sqrt(static_cast<double>(dim)),
            .query_norm = has_own_norms ? &query_norm : nullptr,
            .key_norm = has_own_norms ? &key_norm : nullptr,
            .rotation = &rotation,
            .context = context,
            .window = window,
            .soft_cap = soft_cap};
  }
  [[nodiscard]] Attention bounds(const AttentionEffort& effort = {}) {
    rotation.frequencies = frequencies;
    return attention(norm, maps(), effort);
  }
  [[nodiscard]] std::size_t distances() const {
    return window == 0 ? context : context == 0 ? window : std::min(window, context);
  }

  [[nodiscard]] Eigen::VectorXd mapped(const std::vector<double>& weight, const std::vector<double>& bias,
                                       const NormSpec& own, const Eigen::VectorXd& row) const {
    Eigen::VectorXd result = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(dim));
    for (std::size_t i = 0; i < dim; ++i) {
      if (!bias.empty()) result[static_cast<Eigen::Index>(i)] = bias[i];
      for (std::size_t j = 0; j < norm.width; ++j) {
        result[static_cast<Eigen::Index>(i)] +=
            weight[i * norm.width + j] * row[static_cast<Eigen::Index>(j)];
      }
    }
    if (has_own_norms) norm::forward(own, {result.data(), 1, dim}, {result.data(), 1, dim});
    return result;
  }
  [[nodiscard]] Eigen::VectorXd query_of(const Eigen::VectorXd& row) const {
    return mapped(query, query_bias, query_norm, row);
  }
  [[nodiscard]] Eigen::VectorXd key_of(const Eigen::VectorXd& row) const {
    return mapped(key, key_bias, key_norm, row);
  }

  /// k rotated by the given angle of each pair, with the score factor.
  [[nodiscard]] Eigen::VectorXd turned(const Eigen::VectorXd& k, const std::vector<double>& angles) const {
    Eigen::VectorXd result = k;
    for (std::size_t j = 0; j < rotation.dims / 2; ++j) {
      const auto a = static_cast<Eigen::Index>(rotation.interleaved ? 2 * j : j);
      const auto b = static_cast<Eigen::Index>(rotation.interleaved ? 2 * j + 1 : j + rotation.dims / 2);
      const double cosine = rotation.score_factor * std::cos(angles[j]);
      // (R_p q)·(R_(p − t) k): a key t positions before its query is rotated back relative to it.
      const double sine = -rotation.score_factor * std::sin(angles[j]);
      result[a] = cosine * k[a] - sine * k[b];
      result[b] = sine * k[a] + cosine * k[b];
    }
    return result;
  }
  [[nodiscard]] std::vector<double> angles_at(std::size_t t) const {
    std::vector<double> angles;
    for (const double frequency : frequencies) angles.push_back(frequency * static_cast<double>(t));
    return angles;
  }
  [[nodiscard]] double score(const Eigen::VectorXd& q, const Eigen::VectorXd& k,
                             const std::vector<double>& angles) const {
    const double raw = q.dot(turned(k, angles)) * maps().scale;
    return soft_cap == 0.0 ? raw : soft_cap * std::tanh(raw / soft_cap);
  }

  /// r G Π u/max(|Π u|, 1) + β.
  [[nodiscard]] Eigen::VectorXd row(Eigen::VectorXd u) const {
    if (norm.centers()) u.array() -= u.mean();
    u /= std::max(1.0, u.norm());
    for (std::size_t j = 0; j < norm.width; ++j) {
      u[static_cast<Eigen::Index>(j)] =
          norm.radius() * norm.gain_at(j) * u[static_cast<Eigen::Index>(j)] + norm.bias_at(j);
    }
    return u;
  }
  [[nodiscard]] Eigen::VectorXd point(Random& random) const {
    Eigen::VectorXd u(static_cast<Eigen::Index>(norm.width));
    for (double& value : u) value = random.normal();
    return u;
  }
  /// Distance of a row from the outputs of the norm: |u| − 1 if positive, and with Π the size of the mean.
  [[nodiscard]] double outside(const std::vector<double>& values) const {
    double square = 0.0, mean = 0.0;
    for (std::size_t j = 0; j < norm.width; ++j) {
      if (norm.gain_at(j) == 0.0) {
        if (values[j] != norm.bias_at(j)) return INFINITY;
        continue;
      }
      const double u = (values[j] - norm.bias_at(j)) / (norm.radius() * norm.gain_at(j));
      square += u * u;
      mean += u / static_cast<double>(norm.width);
    }
    return std::max(std::sqrt(square) - 1.0, norm.centers() ? std::abs(mean) : 0.0);
  }
};

inline NormSpec own_norm(Random& random, std::size_t width) {
  NormSpec norm{.kind = NormKind::rms, .width = width, .eps = 1e-12};
  for (std::size_t i = 0; i < width; ++i) norm.gain.push_back(0.3 + random.uniform());
  return norm;
}

inline RotaryCase random_rotary_case(std::uint64_t seed) {
  Random random(seed);
  RotaryCase c;
  c.norm.kind = seed % 3 == 0 ? NormKind::layer : NormKind::rms;
  c.dim = 2 * (1 + random.below(3));
  c.norm.width = c.dim + 2 + random.below(6);
  c.norm.eps = 1e-6;
  const auto fill = [&](std::vector<double>& values, std::size_t count, double size) {
    for (std::size_t i = 0; i < count; ++i) values.push_back(size * random.normal());
  };
  fill(c.query, c.dim * c.norm.width, 0.5);
  fill(c.key, c.dim * c.norm.width, 0.5);
  if (seed % 4 == 1) fill(c.query_bias, c.dim, 2.0);
  if (seed % 4 == 2) fill(c.key_bias, c.dim, 4.0);
  if (seed % 4 == 3) {
    fill(c.query_bias, c.dim, 6.0);
    fill(c.key_bias, c.dim, 1.0);
  }
  if (seed % 5 == 0) fill(c.norm.bias, c.norm.width, 0.5);
  for (std::size_t j = 0; j < c.norm.width; ++j) c.norm.gain.push_back(0.5 + random.uniform());
  c.rotation.dims = seed % 6 == 5 ? c.dim - 2 : c.dim;
  if (c.rotation.dims == 0) c.rotation.dims = 2;
  c.rotation.interleaved = seed % 2 == 0;
  c.rotation.score_factor = seed % 7 == 0 ? 1.3 : 1.0;
  for (std::size_t j = 0; j < c.rotation.dims / 2; ++j) {
    c.frequencies.push_back(
        std::pow(100.0, -2.0 * static_cast<double>(j) / static_cast<double>(c.rotation.dims)));
  }
  c.context = 3 + random.below(60);
  if (seed % 8 == 7) c.window = 4 + random.below(8);
  if (seed % 9 == 8) {
    c.has_own_norms = true;
    c.query_norm = own_norm(random, c.dim);
    c.key_norm = own_norm(random, c.dim);
  }
  return c;
}

}  // namespace normscope::heads
