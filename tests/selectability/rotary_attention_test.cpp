#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/attention.hpp>

#include "support/instruction_sets.hpp"

namespace normscope::selectability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

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

  [[nodiscard]] VectorXd mapped(const std::vector<double>& weight, const std::vector<double>& bias,
                                const NormSpec& own, const VectorXd& row) const {
    VectorXd result = VectorXd::Zero(static_cast<Index>(dim));
    for (std::size_t i = 0; i < dim; ++i) {
      if (!bias.empty()) result[static_cast<Index>(i)] = bias[i];
      for (std::size_t j = 0; j < norm.width; ++j) {
        result[static_cast<Index>(i)] += weight[i * norm.width + j] * row[static_cast<Index>(j)];
      }
    }
    if (has_own_norms) norm::forward(own, {result.data(), 1, dim}, {result.data(), 1, dim});
    return result;
  }
  [[nodiscard]] VectorXd query_of(const VectorXd& row) const {
    return mapped(query, query_bias, query_norm, row);
  }
  [[nodiscard]] VectorXd key_of(const VectorXd& row) const { return mapped(key, key_bias, key_norm, row); }

  /// k rotated by the given angle of each pair, with the score factor.
  [[nodiscard]] VectorXd turned(const VectorXd& k, const std::vector<double>& angles) const {
    VectorXd result = k;
    for (std::size_t j = 0; j < rotation.dims / 2; ++j) {
      const auto a = static_cast<Index>(rotation.interleaved ? 2 * j : j);
      const auto b = static_cast<Index>(rotation.interleaved ? 2 * j + 1 : j + rotation.dims / 2);
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
  [[nodiscard]] double score(const VectorXd& q, const VectorXd& k, const std::vector<double>& angles) const {
    const double raw = q.dot(turned(k, angles)) * maps().scale;
    return soft_cap == 0.0 ? raw : soft_cap * std::tanh(raw / soft_cap);
  }

  /// r G Π u/max(|Π u|, 1) + β.
  [[nodiscard]] VectorXd row(VectorXd u) const {
    if (norm.centers()) u.array() -= u.mean();
    u /= std::max(1.0, u.norm());
    for (std::size_t j = 0; j < norm.width; ++j) {
      u[static_cast<Index>(j)] = norm.radius() * norm.gain_at(j) * u[static_cast<Index>(j)] + norm.bias_at(j);
    }
    return u;
  }
  [[nodiscard]] VectorXd point(Random& random) const {
    VectorXd u(static_cast<Index>(norm.width));
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

NormSpec own_norm(Random& random, std::size_t width) {
  NormSpec norm{.kind = NormKind::rms, .width = width, .eps = 1e-12};
  for (std::size_t i = 0; i < width; ++i) norm.gain.push_back(0.3 + random.uniform());
  return norm;
}

RotaryCase random_rotary_case(std::uint64_t seed) {
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

/// The largest spread found by a random search with decreasing steps, at the given angles.
double searched_spread(const RotaryCase& c, const std::vector<double>& high, const std::vector<double>& low,
                       Random& random) {
  std::vector<VectorXd> points = {c.point(random), c.point(random), c.point(random)};
  const auto spread = [&](const std::vector<VectorXd>& at) {
    const VectorXd q = c.query_of(c.row(at[0]));
    return c.score(q, c.key_of(c.row(at[1])), high) - c.score(q, c.key_of(c.row(at[2])), low);
  };
  double best = spread(points);
  double step = 1.0;
  for (int i = 0; i < 150; ++i) {
    std::vector<VectorXd> next = points;
    for (VectorXd& u : next) u += step * c.point(random);
    const double found = spread(next);
    if (found > best) {
      best = found;
      points = std::move(next);
    } else {
      step *= 0.97;
    }
  }
  return best;
}

TEST(RotaryAttention, NoContextIsBeyondTheBounds) {
  std::size_t above_distance_zero = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    const Attention a = c.bounds();
    ASSERT_TRUE(a.distances.has_value());
    EXPECT_LE(a.sharpest.lower, a.sharpest.upper) << seed;
    EXPECT_LE(a.sharpest.upper, a.distances->sharpest_anywhere) << seed;
    EXPECT_LE(a.most_uniform.lower, a.most_uniform.upper) << seed;
    EXPECT_LE(a.most_uniform.upper, a.distances->uniform_anywhere) << seed;
    EXPECT_LE(a.most_uniform.upper, a.sharpest.upper) << seed;
    Random random(seed + 99);
    for (int i = 0; i < 8; ++i) {
      const std::size_t high = random.below(c.distances());
      const std::size_t low = random.below(c.distances());
      const double found = searched_spread(c, c.angles_at(high), c.angles_at(low), random);
      EXPECT_LE(found, a.sharpest.upper * (1.0 + 1e-12)) << seed;
      if (found > a.distances->sharpest_at_zero.upper) ++above_distance_zero;
    }
  }
  EXPECT_GT(above_distance_zero, 5u) << "bounds at distance 0 do not hold at other distances";
}

TEST(RotaryAttention, TheBoundAtEveryDistanceHoldsForAnyFrequencies) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    const double anywhere = c.bounds().distances->sharpest_anywhere;
    std::vector<double> kept;
    std::swap(kept, c.frequencies);
    c.rotation.frequencies = {};
    const Attention unknown = attention(c.norm, c.maps());
    EXPECT_EQ(unknown.sharpest.upper, anywhere) << seed;
    EXPECT_EQ(unknown.sharpest.lower, 0.0);
    EXPECT_FALSE(unknown.sharpest_keys.has_value());
    EXPECT_TRUE(unknown.distances->curve.empty());
    Random random(seed);
    const auto angles = [&] {
      std::vector<double> result;
      for (std::size_t j = 0; j < kept.size(); ++j)
        result.push_back(2.0 * std::numbers::pi * random.uniform());
      return result;
    };
    for (int i = 0; i < 8; ++i)
      EXPECT_LE(searched_spread(c, angles(), angles(), random), anywhere * (1.0 + 1e-12)) << seed;
  }
}

TEST(RotaryAttention, BoundsAreTight) {
  double worst = 0.0;
  double total = 0.0, known = 0.0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    if (c.distances() < 12) c.context = 12;
    c.window = 0;
    const Attention a = c.bounds();
    EXPECT_TRUE(a.distances->enumerated) << seed;
    if (a.queries_fill == 0.0 || a.keys_fill == 0.0) continue;
    ++known;
    worst = std::max(worst, a.sharpest.upper / a.sharpest.lower);
    total += a.sharpest.upper / a.sharpest.lower;
  }
  EXPECT_GT(known, 50.0);
  EXPECT_LT(worst, 1.6);
  EXPECT_LT(total / known, 1.1);
}

TEST(RotaryAttention, RowsAttainTheBounds) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    const Attention a = c.bounds();
    ASSERT_EQ(a.sharpest_keys.has_value(), a.queries_fill > 0.0 && a.keys_fill > 0.0) << seed;
    if (!a.sharpest_keys) continue;
    const KeyPair& keys = *a.sharpest_keys;
    EXPECT_NE(keys.high_distance, keys.low_distance);
    EXPECT_GE(std::min(keys.high_distance, keys.low_distance), 1u)
        << "distance 0 is the query's own position";
    EXPECT_LT(std::max(keys.high_distance, keys.low_distance), c.distances());
    for (const std::vector<double>* row :
         {&a.sharpest.row, &keys.high_row, &keys.low_row, &a.most_uniform.row}) {
      EXPECT_LE(c.outside(*row), 1e-12) << seed;
    }
    const auto row = [](const std::vector<double>& values) -> VectorXd {
      return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
    };
    const VectorXd q = c.query_of(row(a.sharpest.row));
    const double spread = c.score(q, c.key_of(row(keys.high_row)), c.angles_at(keys.high_distance)) -
                          c.score(q, c.key_of(row(keys.low_row)), c.angles_at(keys.low_distance));
    EXPECT_NEAR(spread, a.sharpest.lower, (c.has_own_norms ? 1e-6 : 1e-11) * a.sharpest.upper) << seed;
  }
}

/// The largest spread of a query over all distances, with the best keys in closed form.
double widest(const RotaryCase& c, const VectorXd& q, std::size_t first) {
  double high = -INFINITY, low = INFINITY;
  const MatrixXd weight =
      Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
          c.key.data(), static_cast<Index>(c.dim), static_cast<Index>(c.norm.width));
  for (std::size_t t = first; t < c.distances(); ++t) {
    std::vector<double> back = c.angles_at(t);
    for (double& angle : back) angle = -angle;
    const VectorXd turned = c.maps().scale * c.turned(q, back);
    VectorXd pull = weight.transpose() * turned;
    for (std::size_t j = 0; j < c.norm.width; ++j)
      pull[static_cast<Index>(j)] *= c.norm.radius() * c.norm.gain_at(j);
    if (c.norm.centers()) pull.array() -= pull.mean();
    double middle = 0.0;
    const VectorXd constant = c.key_of(c.row(VectorXd::Zero(static_cast<Index>(c.norm.width))));
    middle = turned.dot(constant);
    high = std::max(high, middle + pull.norm());
    low = std::min(low, middle - pull.norm());
  }
  return high - low;
}

TEST(RotaryAttention, EveryQueryHasASpreadOfTheLowerBound) {
  std::size_t positive = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    if (c.has_own_norms) continue;
    const Attention a = c.bounds();
    const VectorXd best = Eigen::Map<const VectorXd>(a.most_uniform.query.data(), static_cast<Index>(c.dim));
    const double attained = widest(c, best, 0);
    EXPECT_LE(attained, a.most_uniform.upper * (1.0 + 1e-12) + 1e-12) << seed;
    if (a.most_uniform.lower == 0.0) continue;
    ++positive;
    Random random(seed);
    VectorXd u = c.point(random);
    double least = INFINITY;
    double step = 1.0;
    for (int i = 0; i < 200; ++i) {
      const VectorXd next = u + step * c.point(random);
      const double found = widest(c, c.query_of(c.row(next)), 1);
      if (found < least) {
        least = found;
        u = next;
      } else {
        step *= 0.97;
      }
    }
    EXPECT_GE(least, a.most_uniform.lower * (1.0 - 1e-12)) << seed;
    double shares = 0.0;
    for (const UnavoidableContext& context : a.uniform_proof) shares += context.share;
    EXPECT_NEAR(shares, 1.0, 1e-12);
  }
  EXPECT_GT(positive, 8u);
}

TEST(RotaryAttention, SlowPairsTightenBoundsWithoutEnumeration) {
  for (std::uint64_t seed = 1; seed < 40; seed += 3) {
    RotaryCase c = random_rotary_case(seed);
    c.window = 0;
    for (double& frequency : c.frequencies) frequency *= 1e-3;
    const Attention slow = c.bounds({.operations = 0.0});
    EXPECT_FALSE(slow.distances->enumerated);
    ASSERT_TRUE(slow.distances->in_context.has_value());
    // Pairs hardly rotate, so the bound is close to that at distance 0.
    EXPECT_LE(slow.sharpest.upper, 1.6 * slow.distances->sharpest_at_zero.upper) << seed;
    EXPECT_GE(slow.sharpest.upper, c.bounds().sharpest.lower) << seed;
    Random random(seed);
    for (int i = 0; i < 4; ++i) {
      const auto high = c.angles_at(random.below(c.context));
      EXPECT_LE(searched_spread(c, high, c.angles_at(random.below(c.context)), random), slow.sharpest.upper)
          << seed;
    }
  }
}

TEST(RotaryAttention, UnboundedContextsHaveTheBoundOfAnyDistance) {
  RotaryCase c = random_rotary_case(10);
  c.context = c.window = 0;
  const Attention a = c.bounds();
  EXPECT_EQ(a.distances->within, 0u);
  EXPECT_FALSE(a.distances->enumerated);
  EXPECT_EQ(a.sharpest.upper, a.distances->sharpest_anywhere);
  EXPECT_GT(a.sharpest.lower, 0.9 * a.sharpest.upper) << "over thousands of positions all pairs rotate";
}

TEST(RotaryAttention, PairsOfFrequencyZeroDoNotRotate) {
  RotaryCase c = random_rotary_case(13);
  c.has_own_norms = false;
  c.key_bias.clear();
  c.rotation = {.dims = c.dim, .interleaved = false, .frequencies = {}, .score_factor = 1.5};
  c.frequencies.assign(c.dim / 2, 0.0);
  const Attention still = c.bounds();
  EXPECT_FALSE(still.distances.has_value());
  HeadMaps plain = c.maps();
  plain.rotation = nullptr;
  plain.scale *= 1.5;
  const Attention expected = attention(c.norm, plain);
  EXPECT_NEAR(still.sharpest.upper, expected.sharpest.upper, 1e-11 * expected.sharpest.upper);
  EXPECT_NEAR(still.most_uniform.upper, expected.most_uniform.upper, 1e-11 * expected.sharpest.upper);
}

TEST(RotaryAttention, WithoutTwoEarlierKeysTheLowerBoundIsZero) {
  RotaryCase c = random_rotary_case(16);
  c.window = 2;
  const Attention a = c.bounds();
  EXPECT_EQ(a.sharpest.lower, 0.0);
  EXPECT_GT(a.sharpest.upper, 0.0);
  EXPECT_EQ(a.distances->within, 2u);
  EXPECT_LE(a.most_uniform.upper, a.sharpest.upper);
}

TEST(RotaryAttention, WithoutScalingAZeroQueryIsUniform) {
  RotaryCase c = random_rotary_case(3);
  c.has_own_norms = false;
  EXPECT_TRUE(c.bounds().uniform_without_scaling) << "its query map has full rank";
  // A query that is only the bias is not zero.
  std::fill(c.query.begin(), c.query.end(), 0.0);
  EXPECT_FALSE(c.bounds().uniform_without_scaling);
  std::fill(c.key.begin(), c.key.end(), 0.0);
  c.key_bias.clear();
  c.norm.bias.clear();
  EXPECT_TRUE(c.bounds().uniform_without_scaling) << "all keys are zero";
}

TEST(RotaryAttention, AnExampleByHand) {
  // Queries and keys are the rows themselves, of length √2, and one pair: at any distance keys can be the
  // query rotated back and its negative, so the spread is 2 |q| |k| s.
  RotaryCase c;
  c.dim = 2;
  c.norm = {.kind = NormKind::rms, .width = 2, .eps = 0.0};
  c.query = c.key = {1.0, 0.0, 0.0, 1.0};
  c.rotation.dims = 2;
  c.frequencies = {1.0};
  c.context = 9;
  const Attention a = c.bounds();
  const double expected = 2.0 * 2.0 / std::sqrt(2.0);
  EXPECT_NEAR(a.sharpest.lower, expected, 1e-12);
  EXPECT_NEAR(a.sharpest.upper, expected, 2e-3 * expected);
  EXPECT_NEAR(a.distances->sharpest_anywhere, expected, 1e-9);
  // Equal keys differ in scores only by their rotation.
  c.key = {0.0, 0.0, 0.0, 0.0};
  c.key_bias = {1.0, 0.0};
  const Attention b = c.bounds();
  EXPECT_NEAR(b.distances->sharpest_at_zero.upper, 0.0, 1e-12);
  double most = 0.0;
  for (int i = 1; i < 9; ++i) {
    for (int j = 1; j < i; ++j) most = std::max(most, 2.0 * std::abs(std::sin(0.5 * (i - j))));
  }
  EXPECT_NEAR(b.sharpest.lower, most, 1e-12);
  EXPECT_NEAR(b.sharpest.upper, 2.0, 1e-2);
}

TEST(RotaryAttention, InstructionSetsDoNotChangeTheBounds) {
  for (const std::uint64_t seed : {2U, 3U, 5U, 12U}) {
    RotaryCase c = random_rotary_case(seed);
    c.window = 0;
    c.context = 53;
    std::vector<double> bounds;
    test::for_each_instruction_set([&] {
      const double bound = c.bounds().distances->by_distance->spread;
      bounds.push_back(bound);
      EXPECT_EQ(bound, bounds.front()) << seed;
    });
  }
}

/// b² P − G_t for an odd number of coordinates, two of which do not rotate, against a dense eigensolver.
TEST(RotaryAttention, OddWidthsAreBounded) {
  RotaryCase c = random_rotary_case(12);
  c.dim = 5;
  Random random(4);
  c.query.clear();
  c.key.clear();
  for (std::size_t i = 0; i < c.dim * c.norm.width; ++i) {
    c.query.push_back(random.normal());
    c.key.push_back(random.normal());
  }
  c.query_bias = c.key_bias = {};
  c.rotation.dims = 4;
  c.frequencies = {1.0, 0.03};
  c.context = 31;
  const Attention a = c.bounds();
  ASSERT_TRUE(a.distances->by_distance.has_value());
  const auto matrix = [&](const std::vector<double>& weight, double factor) {
    MatrixXd map = Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        weight.data(), static_cast<Index>(c.dim), static_cast<Index>(c.norm.width));
    for (std::size_t j = 0; j < c.norm.width; ++j) {
      map.col(static_cast<Index>(j)) *= factor * c.norm.radius() * c.norm.gain_at(j);
    }
    if (c.norm.centers()) map.colwise() -= map.rowwise().mean().eval();
    return map;
  };
  const MatrixXd queries = matrix(c.query, 1.0);
  const MatrixXd keys = matrix(c.key, c.maps().scale);
  double most = 0.0;
  for (std::size_t t = 0; t < c.context; ++t) {
    MatrixXd turned = keys;
    for (Index i = 0; i < keys.cols(); ++i) turned.col(i) = c.turned(keys.col(i), c.angles_at(t));
    most = std::max(most, Eigen::BDCSVD<MatrixXd>(turned.transpose() * queries).singularValues()[0]);
  }
  EXPECT_GE(a.distances->by_distance->reach, most);
  EXPECT_LE(a.distances->by_distance->reach, 1.005 * most);
}

TEST(RotaryAttention, RejectsInvalidRotations) {
  RotaryCase c = random_rotary_case(2);
  c.rotation.dims = c.dim + 2;
  EXPECT_THROW((void)c.bounds(), Error);
  c.rotation.dims = 1;
  EXPECT_THROW((void)c.bounds(), Error);
  c = random_rotary_case(2);
  c.frequencies[0] = NAN;
  EXPECT_THROW((void)c.bounds(), Error);
  c = random_rotary_case(2);
  c.frequencies.push_back(1.0);
  EXPECT_THROW((void)c.bounds(), Error);
}

}  // namespace
}  // namespace normscope::selectability
