#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <normscope/core/exact.hpp>

#include "arithmetic.hpp"
#include "heads.hpp"

namespace normscope::verify {
namespace {

void center_rows(Matrix& map) {
  for (std::size_t i = 0; i < map.rows; ++i) {
    DoubleDouble sum;
    for (std::size_t j = 0; j < map.columns; ++j) sum += map.at(i, j);
    const DoubleDouble mean = sum / DoubleDouble(static_cast<double>(map.columns));
    for (std::size_t j = 0; j < map.columns; ++j) map.at(i, j) -= mean;
  }
}

DoubleDouble radius_of(const NormSpec& norm) { return sqrt(DoubleDouble(norm.squared_radius())); }

struct Affine {
  Matrix map{};
  Column constant{};
};

/// W x + b of x = r G Π u + β.
Affine behind_norm(const NormSpec& norm, const Matrix& weight, const Column& bias, bool projects) {
  Affine result{weight, bias};
  const DoubleDouble radius = radius_of(norm);
  for (std::size_t i = 0; i < weight.rows; ++i) {
    for (std::size_t j = 0; j < weight.columns; ++j) {
      result.constant[i] += weight.at(i, j) * DoubleDouble(norm.bias_at(j));
      result.map.at(i, j) = radius * (weight.at(i, j) * DoubleDouble(norm.gain_at(j)));
    }
  }
  if (norm.centers() && projects) center_rows(result.map);
  return result;
}

Matrix matrix_of(const std::vector<double>& values, std::size_t rows) {
  Matrix result(rows, values.size() / rows);
  result.values = to_column(values);
  return result;
}

Column bias_of(const HeadMap& map, std::size_t rows) {
  return map.bias.empty() ? Column(rows) : to_column(map.bias);
}

HeadSide side_of(const AttentionHead& head, const HeadMap& map, bool projects) {
  const std::size_t dim = head.head.head_dim;
  Matrix weight = matrix_of(map.weight, dim);
  Column bias = bias_of(map, dim);
  if (head.between) {
    const Matrix between = matrix_of(head.between->weight, weight.columns);
    const Column shift = product(weight, bias_of(*head.between, weight.columns));
    for (std::size_t i = 0; i < dim; ++i) bias[i] += shift[i];
    weight = product(weight, between);
  }
  Affine input = behind_norm(head.norm, weight, bias, projects);
  HeadSide side;
  if (!map.own) {
    side.map = std::move(input.map);
    side.constant = std::move(input.constant);
    return side;
  }
  const NormSpec& own = *map.own;
  Matrix identity(dim, dim);
  for (std::size_t i = 0; i < dim; ++i) identity.at(i, i) = 1.0;
  Affine outer = behind_norm(own, identity, Column(dim), projects);
  side.map = std::move(outer.map);
  side.constant = std::move(outer.constant);
  side.has_own_norm = true;
  side.own_centers = own.centers() && projects;
  side.input_eps = own.eps * own.squared_radius();
  side.input = std::move(input.map);
  side.input_constant = std::move(input.constant);
  if (side.own_centers) {
    Matrix columns = transposed(side.input);
    center_rows(columns);
    side.input = transposed(columns);
    Matrix constant(1, dim);
    constant.values = side.input_constant;
    center_rows(constant);
    side.input_constant = constant.values;
  }
  return side;
}

/// `projected` is the same side behind the projection, if that is known and the map does not have it.
void measure(HeadSide& side, const HeadSide* projected) {
  side.terms = side.map.columns;
  if (projected == nullptr) {
    side.gram = product_transposed(side.map, side.map);
  } else {
    // W Wᵀ = WΠ(WΠ)ᵀ + N m mᵀ with the means m of rows, whose rounding is that of about as many terms again.
    side.terms *= 2;
    side.gram = projected->gram;
    const DoubleDouble width = static_cast<double>(side.map.columns);
    Column means;
    for (std::size_t i = 0; i < side.map.rows; ++i) {
      DoubleDouble sum;
      for (std::size_t j = 0; j < side.map.columns; ++j) sum += side.map.at(i, j);
      means.push_back(sum / width);
    }
    for (std::size_t i = 0; i < side.map.rows; ++i) {
      for (std::size_t j = 0; j < side.map.rows; ++j) side.gram.at(i, j) += width * (means[i] * means[j]);
    }
  }
  side.map_size = length_of(side.map.values);
  side.constant_size = length_of(side.constant);
}

}  // namespace

Column HeadSide::at(std::span<const double> point) const {
  Column result = product(map, to_column(point));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] += constant[i];
  return result;
}

bool HeadSide::has_full_rank() const {
  Matrix rest = gram;
  const double lost = hidden(terms + 4 * map.rows) * map_size * map_size;
  for (std::size_t i = 0; i < map.rows; ++i) rest.at(i, i) -= DoubleDouble(lost);
  return map_size > 0.0 && cholesky(rest).has_value();
}

bool HeadSide::fills(double radius) const {
  const std::size_t dim = input.rows;
  Matrix rest = product_transposed(input, input);
  const double square = square_of(input.values).high;
  const DoubleDouble needed = DoubleDouble(radius) + DoubleDouble(up(length_of(input_constant)));
  const double lost = hidden(input.columns + 4 * dim) * (square + needed.high * needed.high);
  for (std::size_t i = 0; i < dim; ++i) {
    // Lifts the direction 1, so that it does not determine the smallest eigenvalue.
    if (own_centers) {
      for (std::size_t j = 0; j < dim; ++j) rest.at(i, j) += 2.0 * square / static_cast<double>(dim);
    }
    rest.at(i, i) -= needed * needed + DoubleDouble(lost);
  }
  return cholesky(rest).has_value();
}

Column HeadScores::moving_constant() const {
  Column result = key.constant;
  for (std::size_t i = 0; i < dim; ++i) {
    if (!turning[i]) result[i] = 0.0;
  }
  return result;
}

HeadScores::Turn HeadScores::turn(double distance) const {
  Turn result;
  for (const double frequency : frequencies) {
    const DoubleDouble angle = two_product(-distance, frequency);
    const double cosine = std::cos(angle.high);
    const double sine = std::sin(angle.high);
    result.cosines.push_back(DoubleDouble::sum(cosine, -angle.low * sine));
    result.sines.push_back(DoubleDouble::sum(sine, angle.low * cosine));
  }
  return result;
}

Column HeadScores::turned(Column x, const Turn& turn) const {
  for (std::size_t j = 0; j < pairs(); ++j) {
    const DoubleDouble a = x[first[j]];
    const DoubleDouble b = x[second[j]];
    x[first[j]] = turn.cosines[j] * a - turn.sines[j] * b;
    x[second[j]] = turn.sines[j] * a + turn.cosines[j] * b;
  }
  return x;
}

Column HeadScores::turned(Column x, double distance, bool backwards) const {
  return turned(std::move(x), turn(backwards ? -distance : distance));
}

DoubleDouble HeadScores::score(const Column& at, std::span<const double> key_point,
                               std::size_t distance) const {
  return dot(at, turned(key.at(key_point), static_cast<double>(distance)));
}

HeadScores scores_of(const AttentionHead& head, bool projects, const HeadScores* projected) {
  HeadScores result{.query = side_of(head, head.query, projects), .key = side_of(head, head.key, projects)};
  result.dim = head.head.head_dim;
  result.turning.assign(result.dim, false);
  const std::optional<models::Rotary>& rotary = head.head.rotary;
  const std::size_t dims = rotary ? rotary->dims : 0;
  for (std::size_t i = 0; i < result.dim; ++i) {
    const DoubleDouble factor =
        DoubleDouble(head.head.scale) * DoubleDouble(i < dims ? rotary->score_factor : 1.0);
    for (std::size_t j = 0; j < result.key.map.columns; ++j) result.key.map.at(i, j) *= factor;
    result.key.constant[i] *= factor;
  }
  for (std::size_t j = 0; j < dims / 2; ++j) {
    const bool known = !rotary->frequencies.empty();
    if (known && rotary->frequencies[j] == 0.0) continue;
    result.first.push_back(rotary->interleaved ? 2 * j : j);
    result.second.push_back(rotary->interleaved ? 2 * j + 1 : j + dims / 2);
    if (known) result.frequencies.push_back(rotary->frequencies[j]);
    result.turning[result.first.back()] = result.turning[result.second.back()] = true;
  }
  const auto measure_side = [&](HeadSide& side, const HeadSide* behind) {
    const bool differs = head.norm.centers() && !projects && !side.has_own_norm;
    measure(side, differs ? behind : nullptr);
  };
  measure_side(result.query, projected != nullptr ? &projected->query : nullptr);
  measure_side(result.key, projected != nullptr ? &projected->key : nullptr);
  return result;
}

}  // namespace normscope::verify
