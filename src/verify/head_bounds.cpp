#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/rounding.hpp>

#include "arithmetic.hpp"
#include "heads.hpp"

namespace normscope::verify {
namespace {

/// The number of distances at which a query is evaluated; `heads` writes no larger one.
constexpr std::size_t most_swept = 1u << 16;
/// Smaller spreads, relative to the sizes of the maps, are bounded without squares.
constexpr double negligible_spread = 1e-10;

/// Whether products with a positive number of a certificate cannot underflow or overflow.
bool is_moderate(double value) { return value > 0x1p-200 && value < 0x1p200; }

/// L with L Lᵀ = A + E; `lost` bounds |E| and the error of A, and the caller accounts for it.
struct KeyFactor {
  Matrix factor{};
  double lost = 0.0;
};

/// The factor of A = K Kᵀ.
KeyFactor factor_of(const HeadSide& side) {
  const double square = side.map_size * side.map_size;
  const double least = hidden(side.terms + side.gram.rows) * square;
  KeyFactor result{semidefinite_factor(side.gram, least), 0.0};
  Matrix back = product_transposed(result.factor, result.factor);
  for (std::size_t i = 0; i < back.values.size(); ++i) back.values[i] -= side.gram.values[i];
  result.lost = size_of(back.values) + 2.0 * hidden(side.terms + side.gram.rows) * square;
  return result;
}

}  // namespace

double spread_at_zero_at_most(const HeadScores& scores, double multiplier) {
  const KeyFactor key = factor_of(scores.key);
  Matrix stacked = transposed(key.factor);
  for (DoubleDouble& value : stacked.values) value *= 2.0;
  const double length =
      largest_length(stacked, scores.query, product(stacked, scores.query.constant), multiplier);
  const double sizes = scores.query.size() * scores.key.map_size;
  const double found =
      up(std::sqrt(length * length + 4.0 * key.lost * scores.query.size() * scores.query.size()));
  if (found > negligible_spread * sizes) return found;
  // The rounding of squares hides such spreads; 2 |KᵀC| + 2 |Kᵀc| does not.
  const Matrix maps = product(transposed(scores.key.map), scores.query.map);
  const Column constant = transposed_product(scores.key.map, scores.query.constant);
  return std::min(found,
                  up(2.0 * (length_of(maps.values) + length_of(constant) + hidden(scores.dim) * sizes)));
}

Enclosure spread_at_zero(const HeadScores& scores, std::span<const double> query_point) {
  const Column query = scores.query.at(query_point);
  const double length = 2.0 * length_of(transposed_product(scores.key.map, query));
  const double lost = 4.0 * hidden(scores.query.map.columns + scores.key.map.columns) * scores.query.size() *
                      scores.key.map_size;
  return {DoubleDouble(length), 16.0 * unit * length + lost};
}

PairWeights read_weights(const Field& field, const HeadScores& scores) {
  PairWeights result;
  if (!field["distances"].is_null()) result.distances = field["distances"].count();
  result.weights = field["weights"].numbers(scores.pairs());
  result.turns = field["turns"].numbers(scores.pairs());
  result.still = field["still"].indices(scores.dim);
  result.factor = field["factor"].numbers(result.still.size() * result.still.size());
  result.query_multiplier = field["query_multiplier"].number();
  result.key_multiplier = field["key_multiplier"].number();
  result.spread = field["spread"].number();
  return result;
}

double spread_by_weights(const HeadScores& scores, const PairWeights& proof, const Column* query) {
  const std::size_t dim = scores.dim;
  const std::size_t still = proof.still.size();
  std::vector<bool> stands(dim, false);
  for (const std::size_t i : proof.still) {
    if (stands[i]) return infinity;
    stands[i] = true;
  }
  for (std::size_t i = 0; i < dim; ++i) {
    if (!scores.turning[i] && !stands[i]) return infinity;
  }
  // Rotates slow pairs to their middle angle, and checks that the remainder is as small as stated.
  std::vector<double> middle(scores.pairs(), 0.0);
  for (std::size_t j = 0; j < scores.pairs(); ++j) {
    const bool slow = stands[scores.first[j]];
    if (slow != stands[scores.second[j]] || !(proof.weights[j] > 0.0)) return infinity;
    if (!slow) {
      if (!(proof.turns[j] >= 1.0)) return infinity;
      continue;
    }
    if (proof.distances == 0 || scores.frequencies.empty()) return infinity;
    const double turn = std::abs(scores.frequencies[j]) * static_cast<double>(proof.distances - 1);
    // The last term bounds the errors of the angle and its sine.
    const double least =
        2.0 * std::sin(0.25 * turn) * (1.0 + 64.0 * unit) + 64.0 * unit * (1.0 + turn) * turn;
    if (!(turn <= std::numbers::pi) || !(proof.turns[j] >= least)) return infinity;
    middle[j] = -0.5 * scores.frequencies[j] * static_cast<double>(proof.distances - 1);
  }
  // All scores are 0, or the same for all keys, whatever the weights.
  const bool has_queries = query != nullptr ? size_of(*query) > 0.0 : scores.query.size() > 0.0;
  if (!has_queries || scores.key.map_size + size_of(scores.moving_constant()) == 0.0) return 0.0;
  for (std::size_t j = 0; j < scores.pairs(); ++j) {
    if (!is_moderate(proof.weights[j]) || proof.turns[j] > 0x1p200) return infinity;
  }
  Matrix factor(still, still);
  factor.values = to_column(proof.factor);
  const std::optional<Matrix> back = inverse(factor);
  if (!back) return infinity;
  const Matrix across = transposed(*back);  // F⁻ᵀ
  for (const Matrix* matrix : {static_cast<const Matrix*>(&factor), &across}) {
    if (still > 0 && !is_moderate(size_of(matrix->values))) return infinity;
  }
  const std::size_t rows = still + 2 * scores.pairs();
  Matrix on_query(rows, dim);
  Matrix on_key(rows, dim);
  for (std::size_t i = 0; i < still; ++i) {
    for (std::size_t k = 0; k < still; ++k) {
      on_query.at(i, proof.still[k]) = factor.at(i, k);
      on_key.at(i, proof.still[k]) = across.at(i, k);
    }
    for (std::size_t j = 0; j < scores.pairs(); ++j) {
      if (middle[j] == 0.0) continue;
      // A row of F⁻ᵀ R_mid; any two numbers close to the cosine and sine will do after normalization.
      const DoubleDouble c = std::cos(middle[j]);
      const DoubleDouble s = std::sin(middle[j]);
      const DoubleDouble length = sqrt(c * c + s * s);
      const DoubleDouble a = on_key.at(i, scores.first[j]);
      const DoubleDouble b = on_key.at(i, scores.second[j]);
      on_key.at(i, scores.first[j]) = (c * a + s * b) / length;
      on_key.at(i, scores.second[j]) = (c * b - s * a) / length;
    }
  }
  Column constant(rows);
  const Column moving = scores.moving_constant();
  for (std::size_t j = 0; j < scores.pairs(); ++j) {
    const DoubleDouble of_query = sqrt(DoubleDouble(proof.turns[j]) * DoubleDouble(proof.weights[j]));
    const DoubleDouble of_key = sqrt(DoubleDouble(proof.turns[j]) / DoubleDouble(proof.weights[j]));
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const std::size_t row = still + 2 * j + side;
      const std::size_t i = side == 0 ? scores.first[j] : scores.second[j];
      on_query.at(row, i) = of_query;
      on_key.at(row, i) = of_key;
      constant[row] = of_key * moving[i];
    }
  }
  const double longest_query =
      query != nullptr ? size_of(product(on_query, *query))
                       : largest_length(on_query, scores.query, product(on_query, scores.query.constant),
                                        proof.query_multiplier);
  const double longest_key = largest_length(on_key, scores.key, constant, proof.key_multiplier);
  // The effect of F times its computed inverse on the scores of two keys.
  Matrix apart = product(transposed(factor), across);
  for (std::size_t i = 0; i < still; ++i) apart.at(i, i) -= DoubleDouble(1.0);
  const double left = size_of(apart.values) + hidden(still) * size_of(factor.values) * size_of(across.values);
  const double sizes = scores.query.size() * scores.key.size();
  const double lost = 2.0 * left * sizes + hidden(scores.query.map.columns + rows) *
                                               size_of(on_query.values) * scores.query.size() * longest_key;
  return up(2.0 * longest_query * longest_key) + up(2.0 * lost);
}

double widest_context(const HeadScores& scores, const Column& query, std::size_t distances) {
  if (scores.frequencies.size() != scores.pairs() || distances == 0 || distances > most_swept)
    return infinity;
  const KeyFactor key = factor_of(scores.key);
  const std::vector<double> factor = rounded(transposed(key.factor));  // |Lᵀ x| = |Kᵀ x|
  const Column moving = scores.moving_constant();
  const std::size_t dim = scores.dim;
  const double size = size_of(query);
  const double lost = (2.0 * rounding(static_cast<std::ptrdiff_t>(dim)) + 2.0 * HeadScores::angle_error) *
                      size * (scores.key.map_size + size_of(moving));
  double highest = -infinity;
  double lowest = infinity;
  for (std::size_t t = 0; t < distances; ++t) {
    const Column back = scores.turned(query, static_cast<double>(t), true);
    double square = 0.0;
    for (std::size_t i = 0; i < dim; ++i) {
      double sum = 0.0;
      for (std::size_t k = 0; k < dim; ++k) sum += factor[i * dim + k] * back[k].high;
      square += sum * sum;
    }
    const double half = up(std::sqrt(square + key.lost * size * size));
    const double middle = dot(back, moving).high;
    highest = std::max(highest, middle + half);
    lowest = std::min(lowest, middle - half);
  }
  return up(highest - lowest) + 2.0 * up(lost);
}

double unavoidable_spread(const HeadScores& scores, const std::vector<Context>& contexts, double fill) {
  Column pull(scores.dim);
  DoubleDouble total;
  double size = 0.0;
  const Column moving = scores.moving_constant();
  double largest = 0.0;
  for (const Context& context : contexts) {
    if (!(context.share >= 0.0)) return -infinity;
    largest = std::max(largest, context.share);
  }
  // Only ratios of shares matter; small ones would lose their products to underflow.
  const BinaryScale of_shares = BinaryScale::of(largest);
  for (Context context : contexts) {
    context.share = of_shares.divide(context.share);
    total += DoubleDouble(context.share);
    for (const bool is_high : {true, false}) {
      std::vector<double> point = is_high ? context.high : context.low;
      BinaryScale::of(point).divide(point);
      Column v = to_column(point);
      const DoubleDouble length = sqrt(square_of(v));
      for (DoubleDouble& value : v) {
        value = length.high > 0.0 ? value / length * DoubleDouble(fill) : DoubleDouble(0.0);
      }
      Column key = product(scores.key.map, v);
      for (std::size_t i = 0; i < key.size(); ++i) key[i] += moving[i];
      const double t = static_cast<double>(is_high ? context.high_distance : context.low_distance);
      if (t > 0.0 && scores.frequencies.size() != scores.pairs()) return -infinity;
      if (t > 0.0) key = scores.turned(std::move(key), t);
      const DoubleDouble share = DoubleDouble(is_high ? context.share : -context.share);
      for (std::size_t i = 0; i < key.size(); ++i) pull[i] += share * key[i];
      size += context.share * size_of(key) * (t > 0.0 ? 1.0 : 0.0);
    }
  }
  if (!(total.high > 0.0)) return -infinity;
  const DoubleDouble along = dot(scores.query.constant, pull);
  const DoubleDouble bound = (along - sqrt(square_of(transposed_product(scores.query.map, pull)))) / total;
  const double off =
      HeadScores::angle_error * size + hidden(scores.query.map.columns + scores.key.map.columns) *
                                           (scores.key.map_size + size_of(moving)) * total.high;
  return bound.high * (1.0 - 2.0 * unit) - up(off * scores.query.size() / total.high);
}

double largest_length(const Matrix& stacked, const HeadSide& side, const Column& constant,
                      double multiplier) {
  const std::size_t rows = stacked.rows;
  const Matrix half = product(stacked, side.gram);
  const Matrix gram = product_transposed(half, stacked);
  DoubleDouble trace;
  for (std::size_t i = 0; i < rows; ++i) trace += gram.at(i, i);
  const double shift = square_of(constant).high;
  const double stretch = square_of(stacked.values).high * side.map_size * side.map_size;
  if (stretch == 0.0 && shift == 0.0) return 0.0;
  const double lost = 4.0 * hidden(side.terms + 4 * (rows + stacked.columns)) * (stretch + shift) +
                      std::numeric_limits<double>::min();
  // Behind a constant that is far larger than the map, `lost` is more than the sizes of the factors.
  const double map_square = std::min(std::max(trace.high, 0.0) + lost, up(stretch));
  const double simple = std::sqrt(map_square) + std::sqrt(shift + lost);
  double best = up(simple * simple);
  for (int exponent = 52; exponent >= 20; exponent -= 4) {
    const DoubleDouble mu =
        DoubleDouble(multiplier) * DoubleDouble(1.0 + std::ldexp(1.0, -exponent)) + DoubleDouble(4.0 * lost);
    Matrix inner(rows, rows);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < rows; ++j) inner.at(i, j) = -gram.at(i, j);
      inner.at(i, i) += mu - DoubleDouble(2.0 * lost);
    }
    const std::optional<Matrix> factor = cholesky(inner);
    if (!factor) continue;
    // μI − H is at least lost/2 of I. With x near its inverse times m and r = m − (μI − H)x,
    // mᵀ(μI − H)⁻¹m <= mᵀx + rᵀx + 2|r|²/lost. The factor is of a smaller matrix, so that x is improved once.
    Column x = solve(*factor, constant);
    for (std::size_t i = 0; i < rows; ++i) inner.at(i, i) += DoubleDouble(2.0 * lost);
    const auto remainder = [&] {
      Column rest = product(inner, x);
      for (std::size_t i = 0; i < rows; ++i) rest[i] = constant[i] - rest[i];
      return rest;
    };
    const Column step = solve(*factor, remainder());
    for (std::size_t i = 0; i < rows; ++i) x[i] += step[i];
    const Column rest = remainder();
    const DoubleDouble along = dot(constant, x) + dot(rest, x);
    const double x_square = square_of(x).high;
    const double bound = mu.high * (along.high + square_of(rest).high / (0.5 * lost) +
                                    hidden(rows) * (std::sqrt(shift * x_square) + mu.high * x_square)) +
                         mu.high;
    best = std::min(best, up(bound) + lost);
  }
  return std::isnan(best) ? infinity : up(std::sqrt(best));
}

}  // namespace normscope::verify
