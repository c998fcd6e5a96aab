#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/heads/attention.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::heads {
namespace {

/// A head with a query norm, a key norm or both.
struct OwnNormCase {
  NormSpec norm, query_norm, key_norm;
  std::size_t dim = 2;
  std::vector<double> query, query_bias, key, key_bias;
  bool on_queries = true;
  bool on_keys = true;

  [[nodiscard]] HeadMaps maps() const {
    return {.query = {query.data(), dim, norm.width},
            .query_bias = query_bias,
            .key = {key.data(), dim, norm.width},
            .key_bias = key_bias,
            .scale = 1.0 / std::sqrt(static_cast<double>(dim)),
            .query_norm = on_queries ? &query_norm : nullptr,
            .key_norm = on_keys ? &key_norm : nullptr};
  }

  /// The query or key of an output of the head's input norm.
  [[nodiscard]] std::vector<double> query_of(const std::vector<double>& row) const {
    return passed(query, query_bias, on_queries ? &query_norm : nullptr, row);
  }
  [[nodiscard]] std::vector<double> key_of(const std::vector<double>& row) const {
    return passed(key, key_bias, on_keys ? &key_norm : nullptr, row);
  }

 private:
  [[nodiscard]] std::vector<double> passed(const std::vector<double>& weight, const std::vector<double>& bias,
                                           const NormSpec* own, const std::vector<double>& row) const {
    std::vector<double> result(dim);
    for (std::size_t i = 0; i < dim; ++i) {
      result[i] = bias.empty() ? 0.0 : bias[i];
      for (std::size_t j = 0; j < norm.width; ++j) result[i] += weight[i * norm.width + j] * row[j];
    }
    if (own != nullptr) norm::forward(*own, {result.data(), 1, dim}, {result.data(), 1, dim});
    return result;
  }
};

NormSpec random_norm(Random& random, std::size_t width, bool shifts) {
  NormSpec norm;
  norm.kind = std::vector{NormKind::layer, NormKind::rms, NormKind::spherical}[random.below(3)];
  norm.width = width;
  norm.eps = std::vector{1e-12, 1e-6, 0.01, 1.0}[random.below(4)];
  for (std::size_t i = 0; i < width; ++i) norm.gain.push_back(0.2 + random.uniform());
  for (std::size_t i = 0; i < width && shifts; ++i) norm.bias.push_back(0.3 * random.normal());
  return norm;
}

OwnNormCase random_own_norm_case(std::uint64_t seed) {
  Random random(seed);
  OwnNormCase c;
  c.dim = 2 + random.below(4);
  c.norm = random_norm(random, 3 + random.below(8), seed % 4 == 1);
  c.query_norm = random_norm(random, c.dim, seed % 3 == 0);
  c.key_norm = random_norm(random, c.dim, seed % 3 == 1);
  c.on_queries = seed % 5 != 0;
  c.on_keys = seed % 5 != 1;
  const auto fill = [&](std::vector<double>& values, std::size_t count, double size) {
    for (std::size_t i = 0; i < count; ++i) values.push_back(size * random.normal());
  };
  fill(c.query, c.dim * c.norm.width, 1.0);
  fill(c.key, c.dim * c.norm.width, 1.0);
  if (seed % 4 == 2) fill(c.query_bias, c.dim, 0.3);
  if (seed % 4 == 3) fill(c.key_bias, c.dim, 3.0);
  return c;
}

double score(const OwnNormCase& c, const std::vector<double>& q, const std::vector<double>& k) {
  double sum = 0.0;
  for (std::size_t i = 0; i < c.dim; ++i) sum += q[i] * k[i];
  return sum * c.maps().scale;
}

/// The output of the norm for any point x: r G Π x/max(|Π x|, 1) + β.
std::vector<double> row_of(const OwnNormCase& c, std::vector<double> x) {
  double mean = 0.0, square = 0.0;
  for (const double value : x) mean += c.norm.centers() ? value / static_cast<double>(x.size()) : 0.0;
  for (double& value : x) {
    value -= mean;
    square += value * value;
  }
  const double length = std::max(1.0, std::sqrt(square));
  for (std::size_t j = 0; j < x.size(); ++j) {
    x[j] = c.norm.radius() * c.norm.gain_at(j) * x[j] / length + c.norm.bias_at(j);
  }
  return x;
}

std::vector<double> random_point(const OwnNormCase& c, Random& random) {
  std::vector<double> x(c.norm.width);
  for (double& value : x) value = random.normal();
  return x;
}

/// The highest score of a key found by a random search of the ball with decreasing steps from several starts;
/// the lowest for sign = −1.
double extreme_score(const OwnNormCase& c, const std::vector<double>& q, double sign, Random& random) {
  double highest = -INFINITY;
  for (int start = 0; start < 4; ++start) {
    std::vector<double> point = random_point(c, random);
    double best = -INFINITY;
    double step = 2.0;
    for (int round = 0; round < 400; ++round) {
      std::vector<double> next = point;
      for (double& value : next) value += step * random.normal();
      const double found = sign * score(c, q, c.key_of(row_of(c, next)));
      if (found > best) {
        best = found;
        point = next;
      } else {
        step *= 0.97;
      }
    }
    highest = std::max(highest, best);
  }
  return highest;
}

TEST(OwnNorms, NoContextIsBeyondTheBounds) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const OwnNormCase c = random_own_norm_case(seed);
    const Attention a = attention(c.norm, c.maps());
    EXPECT_LE(a.most_uniform.lower, a.most_uniform.upper) << seed;
    EXPECT_LE(a.sharpest.lower, a.sharpest.upper) << seed;
    Random random(seed + 7);
    std::vector<std::vector<double>> keys;
    for (int i = 0; i < 60; ++i) keys.push_back(c.key_of(row_of(c, random_point(c, random))));
    for (int i = 0; i < 60; ++i) {
      const std::vector<double> q = c.query_of(row_of(c, random_point(c, random)));
      double least = INFINITY, most = -INFINITY;
      for (const std::vector<double>& key : keys) {
        least = std::min(least, score(c, q, key));
        most = std::max(most, score(c, q, key));
      }
      EXPECT_LE(most - least, a.sharpest.upper * (1.0 + 1e-12)) << seed;
    }
  }
}

TEST(OwnNorms, RowsAttainTheBounds) {
  std::size_t known = 0, narrow = 0, bounded = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const OwnNormCase c = random_own_norm_case(seed);
    const Attention a = attention(c.norm, c.maps());
    ASSERT_EQ(a.sharpest.row.empty(), a.queries_fill == 0.0);
    (a.narrow() ? narrow : bounded) += 1;
    Random random(seed);
    for (const Spread* spread : {&a.most_uniform, &a.sharpest}) {
      if (spread->row.empty()) continue;
      const std::vector<double> q = c.query_of(spread->row);
      for (std::size_t i = 0; i < c.dim; ++i) EXPECT_NEAR(q[i], spread->query[i], 1e-7) << seed;
      // The row is an output of the norm.
      double square = 0.0;
      for (std::size_t j = 0; j < c.norm.width; ++j) {
        const double u = (spread->row[j] - c.norm.bias_at(j)) / (c.norm.radius() * c.norm.gain_at(j));
        square += u * u;
      }
      EXPECT_LE(square, 1.0 + 1e-9) << seed;
      const double found = extreme_score(c, q, 1.0, random) + extreme_score(c, q, -1.0, random);
      EXPECT_LE(found, spread->upper + 1e-8 * a.sharpest.upper) << seed;
      EXPECT_GE(found, 0.97 * spread->lower) << seed;
      if (a.keys_fill > 0.0) ++known;
    }
  }
  EXPECT_GT(known, 100u);
  EXPECT_GT(narrow, 20u);
  EXPECT_GT(bounded, 20u);
}

TEST(OwnNorms, NoQueryIsMoreUniformThanTheBound) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    OwnNormCase c = random_own_norm_case(3 * seed);
    c.on_queries = true;
    const Attention a = attention(c.norm, c.maps());
    if (a.most_uniform.lower == 0.0) continue;
    Random random(seed);
    for (int i = 0; i < 20; ++i) {
      const std::vector<double> q = c.query_of(row_of(c, random_point(c, random)));
      const double found = extreme_score(c, q, 1.0, random) + extreme_score(c, q, -1.0, random);
      EXPECT_GE(found, 0.97 * a.most_uniform.lower) << seed;
    }
  }
}

TEST(OwnNorms, OnlyOuterBoundsIfMapsMissADirection) {
  OwnNormCase c = random_own_norm_case(2);
  c.query_norm.kind = NormKind::rms;
  // Both features of the query map are equal, so queries lie on a line.
  for (std::size_t i = 1; i < c.dim; ++i) {
    for (std::size_t j = 0; j < c.norm.width; ++j) c.query[i * c.norm.width + j] = c.query[j];
  }
  const Attention a = attention(c.norm, c.maps());
  EXPECT_EQ(a.queries_fill, 0.0);
  EXPECT_FALSE(a.narrow());
  EXPECT_EQ(a.sharpest.lower, 0.0);
  EXPECT_GT(a.sharpest.upper, 0.0);
  EXPECT_EQ(a.most_uniform.upper, a.sharpest.upper);
}

TEST(OwnNorms, FullBallsGiveTheProductOfTheGains) {
  // Scores are s r² Σ g_i h_i v_i w_i: the sharpest query and key lie where |g_i h_i| is largest.
  OwnNormCase c = random_own_norm_case(2);
  c.query_norm = {.kind = NormKind::rms, .width = 3, .eps = 0.0, .gain = {1.0, -2.0, 0.5}};
  c.key_norm = {.kind = NormKind::rms, .width = 3, .eps = 0.0, .gain = {3.0, 1.0, 8.0}};
  c.norm = {.kind = NormKind::rms, .width = 4};
  c.dim = 3;
  c.query_bias = c.key_bias = {};
  c.query.assign(12, 0.0);
  for (std::size_t i = 0; i < 3; ++i) c.query[i * 5] = 1.0 + static_cast<double>(i);
  c.key = c.query;
  const Attention a = attention(c.norm, c.maps());
  EXPECT_TRUE(a.narrow());
  EXPECT_NEAR(a.queries_fill, 1.0, 1e-12);
  EXPECT_NEAR(a.sharpest.upper, 2.0 / std::sqrt(3.0) * 3.0 * 4.0, 1e-11);
  EXPECT_NEAR(a.sharpest.lower, a.sharpest.upper, 1e-11);
  EXPECT_LE(a.most_uniform.upper, 1e-11);
  EXPECT_TRUE(a.uniform_without_scaling);
}

TEST(OwnNorms, RejectsNormsOfAnotherWidth) {
  OwnNormCase c = random_own_norm_case(2);
  c.key_norm = {.kind = NormKind::rms, .width = c.dim + 1};
  EXPECT_THROW((void)attention(c.norm, c.maps()), Error);
}

}  // namespace
}  // namespace normscope::heads
