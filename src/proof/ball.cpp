#include <normscope/proof/ball.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::proof {
namespace {

void validate(MatrixView<const double> rows, std::span<const double> offsets) {
  if (rows.rows() == 0 || rows.width() == 0 || offsets.size() != rows.rows()) {
    throw Error(
        ErrorCode::Shape,
        fmt::format("ball: {} x {} rows with {} offsets, expected one or more rows and one offset per row",
                    rows.rows(), rows.width(), offsets.size()));
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::span<const double> values = rows.row(row);
    if (!std::all_of(values.begin(), values.end(), finite) || !finite(offsets[row])) {
      throw Error(ErrorCode::Argument,
                  fmt::format("ball: row {} is not finite, expected finite numbers", row));
    }
    if (!finite(2.0 * (euclidean_norm(values) + std::abs(offsets[row])))) {
      throw Error(ErrorCode::Argument,
                  fmt::format("ball: twice the length of row {} is beyond a double's range, expected shorter "
                              "rows",
                              row));
    }
  }
}

/// A lower bound of row·point + offset.
double height(std::span<const double> row, std::span<const double> point, double offset) {
  CompensatedSum total;
  CompensatedSum size;
  total.add(offset);
  for (std::size_t i = 0; i < row.size(); ++i) {
    total.add(row[i] * point[i]);
    size.add(std::abs(row[i] * point[i]));
  }
  // The product rounds by u, the compensated sum by 2u and a second-order term.
  const double tiny = static_cast<double>(row.size() + 1) * std::numeric_limits<double>::min();
  const double terms = 4.0 * unit_roundoff * (size.value() + std::abs(offset)) + tiny;
  if (std::abs(total.value()) > terms) return total.value() - terms;
  // Repeated with each product as two terms, its value and its rounding error.
  CompensatedSum fine;
  fine.add(offset);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double product = row[i] * point[i];
    fine.add(product);
    fine.add(std::fma(row[i], point[i], -product));
  }
  const double second_order = 4.0 * static_cast<double>(row.size() + 1) * unit_roundoff * unit_roundoff;
  return fine.value() - 4.0 * unit_roundoff * std::abs(fine.value()) -
         second_order * (size.value() + std::abs(offset)) - tiny;
}

double scale_of(MatrixView<const double> rows, std::span<const double> offsets) {
  double scale = 0.0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    scale = std::max(scale, euclidean_norm(rows.row(row)) + std::abs(offsets[row]));
  }
  return scale;
}

/// What the bounds prove.
Answer proved_by(const BallMargin& margin) {
  if (margin.upper <= margin.tolerance * margin.scale) return Answer::no;
  return margin.lower > 0.0 ? Answer::yes : Answer::undecided;
}

}  // namespace

BallMargin largest_margin(MatrixView<const double> rows, std::span<const double> offsets, double tolerance) {
  validate(rows, offsets);
  BallMargin result;
  result.scale = scale_of(rows, offsets);
  result.tolerance = tolerance;
  BallSolver solver(rows.width());
  for (std::size_t row = 0; row < rows.rows(); ++row) solver.add(row, rows.row(row), offsets[row]);
  BallSolver::State state = solver.solve(1e-15, -infinity);
  result.point = std::move(state.point);
  // Inside the ball, whatever the rounding of the last division.
  for (double& value : result.point) value *= 1.0 - 16.0 * unit_roundoff;
  result.shares = std::move(state.shares);
  result.iterations = state.iterations;
  result.lower = verified_lower(rows, offsets, result.point);
  result.upper = verified_upper(rows, offsets, result.shares);
  result.answer = proved_by(result);
  return result;
}

double verified_lower(MatrixView<const double> rows, std::span<const double> offsets,
                      std::span<const double> point) {
  const double length = euclidean_norm(point);
  if (point.size() != rows.width() || !(length * (1.0 + 8.0 * unit_roundoff) <= 1.0)) return -infinity;
  double lowest = infinity;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    lowest = std::min(lowest, height(rows.row(row), point, offsets[row]));
  }
  return lowest;
}

double verified_upper(MatrixView<const double> rows, std::span<const double> offsets,
                      const std::vector<PointWeight>& shares) {
  CompensatedSum total;
  for (const PointWeight& share : shares) {
    if (!(share.weight >= 0.0) || share.id >= rows.rows()) return infinity;
    total.add(share.weight);
  }
  if (!(total.value() > 0.0) || !std::isfinite(total.value())) return infinity;
  std::vector<CompensatedSum> sums(rows.width());
  CompensatedSum offset;
  CompensatedSum size;
  double longest = 0.0;
  for (const PointWeight& share : shares) {
    const double weight = share.weight / total.value();
    const std::span<const double> row = rows.row(share.id);
    for (std::size_t i = 0; i < row.size(); ++i) sums[i].add(weight * row[i]);
    offset.add(weight * offsets[share.id]);
    const double length = euclidean_norm(row) + std::abs(offsets[share.id]);
    longest = std::max(longest, length);
    size.add(weight * length);
  }
  std::vector<double> sum(rows.width());
  std::transform(sums.begin(), sums.end(), sum.begin(), [](const CompensatedSum& s) { return s.value(); });
  // Weight, product and sum round the terms by u, u and 2u; the length rounds by 8u. A weight or a product
  // that underflows is off by less than 2⁻¹⁰⁷⁴.
  const double terms = static_cast<double>((rows.width() + 1) * (shares.size() + 8));
  const double lost =
      longest > 0.0 ? terms * std::max(1.0, longest) * std::numeric_limits<double>::denorm_min() : 0.0;
  return euclidean_norm(sum) * (1.0 + 8.0 * unit_roundoff) + offset.value() +
         8.0 * unit_roundoff * size.value() + lost;
}

bool verify(MatrixView<const double> rows, std::span<const double> offsets, const BallMargin& margin) {
  const double scale = scale_of(rows, offsets);
  const bool bounds = verified_lower(rows, offsets, margin.point) >= margin.lower &&
                      verified_upper(rows, offsets, margin.shares) <= margin.upper;
  switch (margin.answer) {
    case Answer::yes: return bounds && margin.lower > 0.0;
    case Answer::no: return bounds && margin.upper <= margin.tolerance * scale;
    case Answer::undecided: return bounds;
  }
  return false;
}

}  // namespace normscope::proof
