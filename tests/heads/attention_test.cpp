#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/heads/attention.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::heads {
namespace {

struct Case {
  NormSpec norm;
  std::size_t dim = 1;
  std::vector<double> query, query_bias, key;

  [[nodiscard]] HeadMaps maps() const {
    return {.query = {query.data(), dim, norm.width},
            .query_bias = query_bias,
            .key = {key.data(), dim, norm.width},
            .scale = 1.0 / std::sqrt(static_cast<double>(dim))};
  }
  [[nodiscard]] std::vector<double> apply(const std::vector<double>& weight, const std::vector<double>& row,
                                          const std::vector<double>& bias) const {
    std::vector<double> result(dim);
    for (std::size_t i = 0; i < dim; ++i) {
      result[i] = bias.empty() ? 0.0 : bias[i];
      for (std::size_t j = 0; j < norm.width; ++j) result[i] += weight[i * norm.width + j] * row[j];
    }
    return result;
  }
  /// An upper bound of every spread, from the sizes of the maps.
  [[nodiscard]] double scale() const {
    double keys = 0.0, queries = 0.0, constant = 0.0;
    for (std::size_t i = 0; i < dim * norm.width; ++i) {
      const double gain = norm.radius() * norm.gain_at(i % norm.width);
      keys += gain * gain * key[i] * key[i];
      queries += gain * gain * query[i] * query[i];
      const double part = query[i] * norm.bias_at(i % norm.width);
      constant += part * part * static_cast<double>(norm.width);
    }
    for (const double value : query_bias) constant += value * value;
    return 2.0 * maps().scale * std::sqrt(keys) * (std::sqrt(queries) + std::sqrt(constant));
  }
};

Case random_case(std::uint64_t seed) {
  Random random(seed);
  Case c;
  c.norm.kind = std::vector{NormKind::layer, NormKind::rms, NormKind::spherical}[seed % 3];
  c.norm.width = 2 + random.below(20);
  c.norm.eps = 1e-5;
  c.dim = 1 + random.below(8);
  const auto fill = [&](std::vector<double>& values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) values.push_back(random.normal());
  };
  fill(c.query, c.dim * c.norm.width);
  fill(c.key, c.dim * c.norm.width);
  if (seed % 2 == 0) fill(c.query_bias, c.dim);
  if (seed % 5 != 0) fill(c.norm.bias, c.norm.width);
  if (seed % 7 != 0) fill(c.norm.gain, c.norm.width);
  if (seed % 11 == 0 && !c.norm.gain.empty()) c.norm.gain[0] = 0.0;
  return c;
}

TEST(Attention, BoundsMeet) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Case c = random_case(seed);
    const Attention a = attention(c.norm, c.maps());
    const auto expect_near = [&](const Spread& spread) {
      EXPECT_LE(spread.lower, spread.upper) << seed;
      EXPECT_LE(spread.upper - spread.lower, 1e-10 * c.scale()) << seed;
    };
    expect_near(a.most_uniform);
    expect_near(a.sharpest);
    ASSERT_EQ(a.uniform_without_projection.has_value(), c.norm.kind == NormKind::layer);
    if (!a.uniform_without_projection) continue;
    expect_near(*a.uniform_without_projection);
    expect_near(*a.sharpest_without_projection);
    // The smaller ball lies in the larger one.
    EXPECT_LE(a.sharpest.lower, a.sharpest_without_projection->upper);
  }
}

TEST(Attention, NoContextIsBeyondTheBounds) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Case c = random_case(seed);
    const Attention a = attention(c.norm, c.maps());
    Random random(seed + 1);
    const std::size_t rows = 64;
    std::vector<double> x(rows * c.norm.width), h(x.size());
    for (double& value : x) value = std::exp(2.0 * random.normal()) * random.normal();
    norm::forward(c.norm, {x.data(), rows, c.norm.width}, {h.data(), rows, c.norm.width});
    std::vector<std::vector<double>> keys;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto begin = h.begin() + static_cast<std::ptrdiff_t>(r * c.norm.width);
      keys.push_back(c.apply(c.key, {begin, begin + static_cast<std::ptrdiff_t>(c.norm.width)}, {}));
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const auto begin = h.begin() + static_cast<std::ptrdiff_t>(r * c.norm.width);
      const std::vector<double> q =
          c.apply(c.query, {begin, begin + static_cast<std::ptrdiff_t>(c.norm.width)}, c.query_bias);
      double least = INFINITY, most = -INFINITY;
      for (const std::vector<double>& key : keys) {
        double score = 0.0;
        for (std::size_t i = 0; i < c.dim; ++i) score += q[i] * key[i] * c.maps().scale;
        least = std::min(least, score);
        most = std::max(most, score);
      }
      EXPECT_LE(most - least, a.sharpest.upper * (1.0 + 1e-12)) << seed;
    }
  }
}

/// The largest difference of two keys' scores under `q`, by its definition.
double spread_of(const Case& c, const std::vector<double>& q) {
  std::vector<double> pulled(c.norm.width);
  for (std::size_t j = 0; j < c.norm.width; ++j) {
    for (std::size_t i = 0; i < c.dim; ++i) pulled[j] += q[i] * c.key[i * c.norm.width + j];
    pulled[j] *= c.norm.radius() * c.norm.gain_at(j);
  }
  double mean = 0.0;
  for (const double value : pulled) mean += value / static_cast<double>(c.norm.width);
  double total = 0.0;
  for (const double value : pulled) {
    const double part = value - (c.norm.centers() ? mean : 0.0);
    total += part * part;
  }
  return 2.0 * c.maps().scale * std::sqrt(total);
}

TEST(Attention, QueriesAttainTheBounds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Case c = random_case(seed);
    const Attention a = attention(c.norm, c.maps());
    for (const Spread* spread : {&a.most_uniform, &a.sharpest}) {
      const std::vector<double> q = c.apply(c.query, spread->row, c.query_bias);
      for (std::size_t i = 0; i < c.dim; ++i) EXPECT_NEAR(q[i], spread->query[i], 1e-10 * c.scale()) << seed;
      EXPECT_NEAR(spread_of(c, q), spread->upper, 2e-10 * c.scale()) << seed;
    }
  }
}

TEST(Attention, RowsBesideALargeBiasLieInTheImage) {
  for (const double size : {1e3, 1e6, 1e9, 1e12, 1e15, 1e17}) {
    for (std::uint64_t seed = 1; seed < 30; ++seed) {
      Case c = random_case(seed);
      Random random(seed + 3);
      c.norm.bias.clear();
      for (std::size_t j = 0; j < c.norm.width; ++j) c.norm.bias.push_back(size * random.normal());
      for (double& gain : c.norm.gain) gain = 0.5 + std::abs(gain);
      const Attention a = attention(c.norm, c.maps());
      ASSERT_EQ(a.sharpest.row.size(), c.norm.width) << seed;
      long double square = 0.0L;
      for (std::size_t j = 0; j < c.norm.width; ++j) {
        const long double u = (static_cast<long double>(a.sharpest.row[j]) - c.norm.bias[j]) /
                              (static_cast<long double>(c.norm.radius()) * c.norm.gain_at(j));
        square += u * u;
      }
      EXPECT_LE(square, 1.0L) << size << " " << seed;
    }
  }
}

TEST(Attention, SphereAttainsTheBoundsIfMapsHaveAKernel) {
  std::size_t moved = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Case c = random_case(seed);
    if (c.dim + (c.norm.centers() ? 1 : 0) >= c.norm.width) continue;
    const auto width = static_cast<Eigen::Index>(c.norm.width);
    // Directions of u that change neither the query nor, with Π, the mean.
    Eigen::MatrixXd held = Eigen::MatrixXd::Ones(static_cast<Eigen::Index>(c.dim) + 1, width);
    Eigen::VectorXd u(width);
    const Spread least = attention(c.norm, c.maps()).most_uniform;
    for (Eigen::Index j = 0; j < width; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const double gain = c.norm.radius() * c.norm.gain_at(at);
      u[j] = gain == 0.0 ? 0.0 : (least.row[at] - c.norm.bias_at(at)) / gain;
      for (std::size_t i = 0; i < c.dim; ++i) {
        held(static_cast<Eigen::Index>(i), j) = c.query[i * c.norm.width + at] * gain;
      }
    }
    if (!c.norm.centers()) held.row(held.rows() - 1).setZero();
    const Eigen::VectorXd way = held.fullPivLu().kernel().col(0).normalized();
    const double along = u.dot(way);
    u += (std::sqrt(std::max(0.0, along * along + 1.0 - u.squaredNorm())) - along) * way;
    EXPECT_NEAR(u.norm(), 1.0, 1e-12) << seed;
    std::vector<double> row(c.norm.width);
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = c.norm.radius() * c.norm.gain_at(j) * u[static_cast<Eigen::Index>(j)] + c.norm.bias_at(j);
    }
    EXPECT_NEAR(spread_of(c, c.apply(c.query, row, c.query_bias)), least.upper, 2e-10 * c.scale()) << seed;
    ++moved;
  }
  EXPECT_GT(moved, 40u);
}

TEST(Attention, OneFeatureGivesAnInterval) {
  Case c = random_case(6);
  c.norm.kind = NormKind::rms;
  c.dim = 1;
  c.query.resize(c.norm.width);
  c.key.resize(c.norm.width);
  double keys = 0.0, queries = 0.0, constant = 40.0;
  c.query_bias = {constant};
  for (std::size_t j = 0; j < c.norm.width; ++j) {
    const double gain = c.norm.radius() * c.norm.gain_at(j);
    keys += gain * gain * c.key[j] * c.key[j];
    queries += gain * gain * c.query[j] * c.query[j];
    constant += c.query[j] * c.norm.bias_at(j);
  }
  const Attention a = attention(c.norm, c.maps());
  const double reach = std::sqrt(queries);
  EXPECT_NEAR(a.most_uniform.lower, 2.0 * std::sqrt(keys) * std::max(0.0, std::abs(constant) - reach),
              1e-11 * c.scale());
  EXPECT_NEAR(a.sharpest.upper, 2.0 * std::sqrt(keys) * (std::abs(constant) + reach), 1e-11 * c.scale());
}

TEST(Attention, WithoutABiasSomeRowAttendsUniformly) {
  Case c = random_case(3);
  c.query_bias.clear();
  c.norm.bias.clear();
  const Attention a = attention(c.norm, c.maps());
  EXPECT_LE(a.most_uniform.upper, 1e-10 * c.scale());
  EXPECT_TRUE(a.uniform_without_scaling);
}

TEST(Attention, ProjectionRemovesQueriesOfTheMean) {
  // Queries depend on the mean alone, so with the projection the bias is the only query.
  Case c;
  c.norm.width = 6;
  c.dim = 2;
  c.query.assign(12, 1.0);
  c.query_bias = {1.0, 2.0};
  Random random(1);
  for (int i = 0; i < 12; ++i) c.key.push_back(random.normal());
  const Attention a = attention(c.norm, c.maps());
  const double only = spread_of(c, c.query_bias);
  EXPECT_NEAR(a.most_uniform.lower, only, 1e-10 * c.scale());
  EXPECT_NEAR(a.sharpest.upper, only, 1e-10 * c.scale());
  EXPECT_FALSE(a.uniform_without_scaling);
  EXPECT_LT(a.uniform_without_projection->upper, a.most_uniform.lower);
  EXPECT_GT(a.sharpest_without_projection->lower, a.sharpest.upper);
}

/// Checks that a row is an output of the norm, by its inverse: |u| <= 1, and with Π the mean of u is 0.
void expect_in_image(const Case& c, const std::vector<double>& row, std::uint64_t seed) {
  ASSERT_EQ(row.size(), c.norm.width);
  double square = 0.0, sum = 0.0;
  std::size_t erased = 0;
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (c.norm.gain_at(j) == 0.0) {
      EXPECT_EQ(row[j], c.norm.bias_at(j)) << seed;
      ++erased;
      continue;
    }
    const double u = (row[j] - c.norm.bias_at(j)) / (c.norm.radius() * c.norm.gain_at(j));
    square += u * u;
    sum += u;
  }
  EXPECT_LE(square, 1.0 + 1e-14) << seed;
  if (c.norm.centers() && erased == 0) {
    EXPECT_NEAR(sum, 0.0, 1e-12) << seed;
  }
}

TEST(Attention, RowsLieInTheImageForEveryRank) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Case c = random_case(seed);
    Random random(seed + 5);
    // The query map has a lower rank than it has rows, rank 0, or reads only the mean, which Π removes, or
    // mostly the mean.
    switch (seed % 4) {
      case 0:
        for (std::size_t i = 1; i < c.dim; ++i) {
          std::copy_n(c.query.begin(), c.norm.width,
                      c.query.begin() + static_cast<std::ptrdiff_t>(i * c.norm.width));
        }
        break;
      case 1: std::fill(c.query.begin(), c.query.end(), 0.0); break;
      case 2: std::fill(c.query.begin(), c.query.end(), 1.0); break;
      case 3:
        for (std::size_t i = 0; i < c.dim; ++i) {
          const double shift = 1e3 * random.normal();
          for (std::size_t j = 0; j < c.norm.width; ++j) c.query[i * c.norm.width + j] += shift;
        }
        break;
    }
    const Attention a = attention(c.norm, c.maps());
    for (const Spread* spread : {&a.most_uniform, &a.sharpest}) {
      expect_in_image(c, spread->row, seed);
      const std::vector<double> q = c.apply(c.query, spread->row, c.query_bias);
      const double size = c.scale();
      EXPECT_GE(spread_of(c, q), spread->lower - 1e-10 * size) << seed;
      EXPECT_LE(spread_of(c, q), spread->upper + 1e-10 * size) << seed;
    }
    if (!a.sharpest_keys || a.sharpest_keys->high_row.empty()) continue;
    expect_in_image(c, a.sharpest_keys->high_row, seed);
    expect_in_image(c, a.sharpest_keys->low_row, seed);
  }
}

TEST(Attention, KeysAttainTheBounds) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Case c = random_case(seed);
    const Attention a = attention(c.norm, c.maps());
    ASSERT_TRUE(a.sharpest_keys.has_value());
    const std::vector<double> high = c.apply(c.key, a.sharpest_keys->high_row, {});
    const std::vector<double> low = c.apply(c.key, a.sharpest_keys->low_row, {});
    double spread = 0.0;
    for (std::size_t i = 0; i < c.dim; ++i) {
      spread += a.sharpest.query[i] * (high[i] - low[i]) * c.maps().scale;
    }
    EXPECT_NEAR(spread, a.sharpest.lower, 1e-10 * c.scale()) << seed;
    if (a.most_uniform.lower == 0.0) continue;
    // The lower bound yᵀm − |Mᵀy| of the stored point y.
    ASSERT_EQ(a.uniform_proof.size(), 1u) << seed;
    EXPECT_EQ(a.uniform_proof[0].share, 1.0);
  }
}

TEST(Attention, SoftCapBoundsHold) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed);
    HeadMaps maps = c.maps();
    const Attention raw = attention(c.norm, maps);
    maps.soft_cap = 0.2 * raw.sharpest.upper + 1e-3;
    const double cap = maps.soft_cap;
    const Attention a = attention(c.norm, maps);
    EXPECT_NEAR(a.sharpest.upper, 2.0 * cap * std::tanh(0.5 * raw.sharpest.upper / cap), 1e-12 * cap);
    EXPECT_LE(a.sharpest.upper, 2.0 * cap * (1.0 + 1e-14));
    EXPECT_LE(a.sharpest.lower, a.sharpest.upper);
    EXPECT_LE(a.most_uniform.lower, a.most_uniform.upper);
    // The stored context attains the bounds after the cap.
    const std::vector<double> high = c.apply(c.key, a.sharpest_keys->high_row, {});
    const std::vector<double> low = c.apply(c.key, a.sharpest_keys->low_row, {});
    double up = 0.0, down = 0.0;
    for (std::size_t i = 0; i < c.dim; ++i) {
      up += a.sharpest.query[i] * high[i] * maps.scale;
      down += a.sharpest.query[i] * low[i] * maps.scale;
    }
    EXPECT_NEAR(cap * (std::tanh(up / cap) - std::tanh(down / cap)), a.sharpest.lower, 1e-10 * c.scale())
        << seed;
    // No query has a smaller spread than the lower bound.
    Random random(seed);
    double least = INFINITY;
    for (int i = 0; i < 50; ++i) {
      std::vector<double> x(c.norm.width), y(c.norm.width);
      for (double& value : x) value = random.normal();
      norm::forward(c.norm, {x.data(), 1, c.norm.width}, {y.data(), 1, c.norm.width});
      least = std::min(least, spread_of(c, c.apply(c.query, y, c.query_bias)));
    }
    EXPECT_LE(a.most_uniform.lower, 2.0 * cap * std::tanh(0.5 * least / cap)) << seed;
  }
}

TEST(Attention, HoldsForEveryMapWithinTheErrors) {
  const double size = 1e-3;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    Case c = random_case(seed);
    c.dim += c.dim % 2;
    Random random(seed + 1);
    const auto fill = [&](std::size_t count) {
      std::vector<double> values(count);
      for (double& value : values) value = random.normal();
      return values;
    };
    c.query = fill(c.dim * c.norm.width);
    c.key = fill(c.dim * c.norm.width);
    c.query_bias = fill(c.dim);
    const std::vector<double> key_bias = fill(c.dim);
    const std::vector<double> weight_error(c.dim * c.norm.width, size), bias_error(c.dim, size);
    const std::vector<double> frequencies(c.dim / 2, 0.7);
    const Rotation rotation{.dims = c.dim, .frequencies = frequencies};
    const NormSpec own{.kind = NormKind::rms, .width = c.dim, .eps = 1e-3};
    HeadMaps maps = c.maps();
    maps.key_bias = key_bias;
    maps.rotation = seed % 2 == 0 ? &rotation : nullptr;
    maps.context = 5;
    if (seed % 3 == 0) maps.query_norm = maps.key_norm = &own;
    if (seed % 4 == 0) maps.soft_cap = 8.0;
    HeadMaps with_errors = maps;
    const MatrixView<const double> errors(weight_error.data(), c.dim, c.norm.width);
    with_errors.query_error = with_errors.key_error = {errors, bias_error};
    const Attention wide = attention(c.norm, with_errors);
    for (int trial = 0; trial < 4; ++trial) {
      const auto moved = [&](const std::vector<double>& values) {
        std::vector<double> result = values;
        for (double& value : result)
          value += size * (trial == 0 ? 1.0 : 1.0 - static_cast<double>(random.below(3)));
        return result;
      };
      const std::vector<double> query = moved(c.query), key = moved(c.key);
      const std::vector<double> query_bias = moved(c.query_bias), other_bias = moved(key_bias);
      HeadMaps other = maps;
      other.query = {query.data(), c.dim, c.norm.width};
      other.key = {key.data(), c.dim, c.norm.width};
      other.query_bias = query_bias;
      other.key_bias = other_bias;
      const Attention exact = attention(c.norm, other);
      const auto expect_around = [&](const Spread& outer, const Spread& inner) {
        EXPECT_GE(outer.upper, inner.lower) << seed;
        EXPECT_LE(outer.lower, inner.upper) << seed;
      };
      expect_around(wide.sharpest, exact.sharpest);
      expect_around(wide.most_uniform, exact.most_uniform);
      EXPECT_LE(wide.queries_fill, exact.queries_fill);
      EXPECT_LE(wide.keys_fill, exact.keys_fill);
      if (wide.sharpest_without_projection) {
        expect_around(*wide.sharpest_without_projection, *exact.sharpest_without_projection);
      }
      if (!wide.distances) continue;
      EXPECT_GE(wide.distances->sharpest_anywhere, exact.sharpest.lower) << seed;
      expect_around(wide.distances->sharpest_at_zero, exact.distances->sharpest_at_zero);
    }
  }
}

TEST(Attention, SoftCapBoundsScoresWithoutProjection) {
  // Queries and keys are long along all-ones, and the keys' bias shifts all scores far into the cap.
  const NormSpec norm{.kind = NormKind::layer, .width = 2};
  const std::vector<double> ones = {1.0, 1.0}, query_bias = {0.01}, key_bias = {10.0};
  const HeadMaps maps{.query = {ones.data(), 1, 2},
                      .query_bias = query_bias,
                      .key = {ones.data(), 1, 2},
                      .key_bias = key_bias,
                      .scale = 1.0,
                      .soft_cap = 1.0};
  const Attention a = attention(norm, maps);
  double sharpest = 0.0;
  for (double u = -1.0; u <= 1.0; u += 1e-4) {
    const double query = 2.0 * u + 0.01;
    sharpest = std::max(sharpest, std::abs(std::tanh(query * 12.0) - std::tanh(query * 8.0)));
  }
  EXPECT_LE(a.sharpest_without_projection->lower, sharpest);
  EXPECT_GE(a.sharpest_without_projection->upper, sharpest);
}

TEST(Attention, RejectsMapsOutsideTheRange) {
  for (const double size : {1e200, 1e-200, 1e300}) {
    Case c = random_case(7);
    for (double& value : c.query) value *= size;
    EXPECT_THROW((void)attention(c.norm, c.maps()), Error) << size;
    c = random_case(7);
    for (double& value : c.key) value *= size;
    EXPECT_THROW((void)attention(c.norm, c.maps()), Error) << size;
  }
  Case c = random_case(7);
  const double before = attention(c.norm, c.maps()).sharpest.upper;
  for (double& value : c.query) value *= 0x1p60;
  for (double& value : c.query_bias) value *= 0x1p60;
  EXPECT_NEAR(attention(c.norm, c.maps()).sharpest.upper, 0x1p60 * before, 1e-9 * 0x1p60 * before);
}

TEST(Attention, RejectsInvalidHeads) {
  Case c = random_case(4);
  HeadMaps maps = c.maps();
  maps.key = {c.key.data(), c.dim, c.norm.width - 1, c.norm.width};
  EXPECT_THROW((void)attention(c.norm, maps), Error);
  c.key[0] = std::nan("");
  EXPECT_THROW((void)attention(c.norm, c.maps()), Error);
  Case groups = random_case(5);
  groups.norm.groups = groups.norm.width;
  EXPECT_THROW((void)attention(groups.norm, groups.maps()), Error);
}

/// The message of the refusal, which has the given code; empty if the head is accepted.
std::string refusal(const NormSpec& norm, const HeadMaps& maps, ErrorCode code) {
  try {
    (void)attention(norm, maps);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
}

TEST(Attention, NamesTheShapesThatDoNotFit) {
  const Case c = random_case(4);
  const std::size_t dim = c.dim;
  const std::size_t width = c.norm.width;
  const std::vector<double> numbers(2 * (dim + 1) * (width + 1), 0.5);
  const auto view = [&](std::size_t rows, std::size_t columns) {
    return MatrixView<const double>(numbers.data(), rows, columns);
  };
  const auto list = [&](std::size_t count) { return std::span(numbers).first(count); };
  const auto says = [&](const auto& change, const char* what) {
    HeadMaps maps = c.maps();
    change(maps);
    const std::string message = refusal(c.norm, maps, ErrorCode::Shape);
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  const char* const shapes = "twice and a bias for each feature or none";
  says([&](HeadMaps& m) { m.query = m.key = view(0, width), m.query_bias = {}; }, shapes);
  says([&](HeadMaps& m) { m.key = view(dim + 1, width); }, shapes);
  says([&](HeadMaps& m) { m.query = view(dim, width + 1); }, shapes);
  says([&](HeadMaps& m) { m.query_bias = list(dim + 1); }, shapes);
  says([&](HeadMaps& m) { m.key_bias = list(dim + 1); }, shapes);
  const char* const errors = "the error bounds of a map do not have its shape";
  says([&](HeadMaps& m) { m.query_error.weight = view(dim + 1, width); }, errors);
  says([&](HeadMaps& m) { m.key_error.weight = view(dim, width + 1); }, errors);
  says([&](HeadMaps& m) { m.key_error.bias = list(dim + 1); }, errors);
  const std::vector<double> frequencies(dim, 0.5);
  const auto turned = [&](Rotation rotation, std::size_t count) {
    rotation.frequencies = std::span(frequencies).first(count);
    says([&](HeadMaps& m) { m.rotation = &rotation; }, "a frequency for each pair or none");
  };
  turned({.dims = 1}, 0);
  turned({.dims = 2 * dim + 2}, 0);
  if (dim >= 2) turned({.dims = 2}, 2);
}

TEST(Attention, NamesNumbersThatAreNotFinite) {
  const Case c = random_case(4);
  const std::vector<double> fine(c.dim * c.norm.width, 0.5);
  for (const double broken : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> bad(c.dim * c.norm.width, broken);
    const MatrixView<const double> matrix(bad.data(), c.dim, c.norm.width);
    const std::span<const double> list = std::span(bad).first(c.dim);
    const auto says = [&](const auto& change, const char* what) {
      HeadMaps maps = c.maps();
      change(maps);
      const std::string message = refusal(c.norm, maps, ErrorCode::Argument);
      EXPECT_NE(message.find(what), std::string::npos) << message;
    };
    const char* const entry = "an entry of the head's maps is not finite";
    says([&](HeadMaps& m) { m.query = matrix; }, entry);
    says([&](HeadMaps& m) { m.key = matrix; }, entry);
    says([&](HeadMaps& m) { m.query_bias = list; }, entry);
    says([&](HeadMaps& m) { m.key_bias = list; }, entry);
    says([&](HeadMaps& m) { m.scale = broken; }, entry);
    says([&](HeadMaps& m) { m.query_error.weight = matrix; }, entry);
    says([&](HeadMaps& m) { m.key_error = {{fine.data(), c.dim, c.norm.width}, list}; }, entry);
    says([&](HeadMaps& m) { m.soft_cap = broken; }, "a soft cap of");
    const Rotation factor{.dims = 0, .score_factor = broken};
    says([&](HeadMaps& m) { m.rotation = &factor; }, "frequency or score factor");
  }
  HeadMaps negative = c.maps();
  negative.soft_cap = -1.0;
  EXPECT_NE(refusal(c.norm, negative, ErrorCode::Argument).find("a soft cap of -1"), std::string::npos);
  // Maps within the range, and a bias outside it.
  const std::vector<double> large(c.dim, 1e200);
  HeadMaps beyond = c.maps();
  beyond.query_bias = large;
  EXPECT_NE(refusal(c.norm, beyond, ErrorCode::Unsupported).find("2^-120 to 2^120"), std::string::npos);
}

TEST(Attention, ANegativeScaleExchangesTheKeys) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Case c = random_case(seed);
    HeadMaps maps = c.maps();
    const Attention plain = attention(c.norm, maps);
    maps.scale = -maps.scale;
    const Attention a = attention(c.norm, maps);
    EXPECT_NEAR(a.sharpest.upper, plain.sharpest.upper, 1e-12 * c.scale()) << seed;
    EXPECT_NEAR(a.most_uniform.upper, plain.most_uniform.upper, 1e-10 * c.scale()) << seed;
    ASSERT_TRUE(a.sharpest_keys.has_value()) << seed;
    const std::vector<double> high = c.apply(c.key, a.sharpest_keys->high_row, {});
    const std::vector<double> low = c.apply(c.key, a.sharpest_keys->low_row, {});
    double spread = 0.0;
    for (std::size_t i = 0; i < c.dim; ++i) spread += a.sharpest.query[i] * (high[i] - low[i]) * maps.scale;
    EXPECT_NEAR(spread, a.sharpest.lower, 1e-10 * c.scale()) << seed;
  }
}

TEST(Attention, ASoftCapOfEqualScoresIsZero) {
  Case c = random_case(3);
  std::fill(c.key.begin(), c.key.end(), 0.0);
  HeadMaps maps = c.maps();
  maps.soft_cap = 2.0;
  const Attention a = attention(c.norm, maps);
  EXPECT_EQ(a.sharpest.lower, 0.0);
  EXPECT_LE(a.sharpest.upper, 1e-12);
  EXPECT_LE(a.most_uniform.upper, 1e-12);
}

}  // namespace
}  // namespace normscope::heads
