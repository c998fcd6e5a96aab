#include "subspace.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/signature/extract.hpp>

namespace normscope::signature {
namespace {

/// Subtracts the mean row.
void center_columns(std::vector<double>& matrix, std::size_t width) {
  const std::size_t rows = matrix.size() / width;
  std::vector<CompensatedSum> sums(width);
  for (std::size_t k = 0; k < matrix.size(); ++k) sums[k % width].add(matrix[k]);
  for (std::size_t k = 0; k < matrix.size(); ++k)
    matrix[k] -= sums[k % width].value() / static_cast<double>(rows);
}

/// Σ coordinates_k left_k.
std::vector<double> combined(const Basis& basis, const std::vector<double>& coordinates) {
  std::vector<double> result(basis.count);
  for (std::size_t i = 0; i < basis.count; ++i) {
    const double* const row = basis.left.data() + i * basis.rank;
    double sum = 0.0;
    for (std::size_t k = 0; k < basis.rank; ++k) sum += coordinates[k] * row[k];
    result[i] = sum;
  }
  return result;
}

/// The coordinates of the ellipsoid's point nearest to `inside`, a point outside the ellipsoid.
std::vector<double> nearest(const std::vector<double>& values, const std::vector<double>& inside) {
  const auto point = [&](double multiplier) {
    std::vector<double> result(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      result[k] = values[k] * values[k] * inside[k] / (values[k] * values[k] + multiplier);
    }
    return result;
  };
  const auto is_outside = [&](double multiplier) {
    double sum = 0.0;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double u = values[k] * inside[k] / (values[k] * values[k] + multiplier);
      sum += u * u;
    }
    return sum > 1.0;
  };
  double most = 0.0;
  for (std::size_t k = 0; k < values.size(); ++k) most += std::abs(values[k] * inside[k]);
  double least = 0.0;
  for (int step = 0; step < 100; ++step) {
    const double middle = step < 40 && least > 0.0 ? std::sqrt(least * most) : 0.5 * (least + most);
    (is_outside(middle) ? least : most) = middle;
  }
  return point(least);
}

}  // namespace

Basis BasisMaker::of(std::span<const std::size_t> tokens) const {
  Basis result;
  std::vector<double> part;
  MatrixView<const double> rows = matrix_;
  if (tokens.empty()) {
    result.offsets.assign(offsets_.begin(), offsets_.end());
  } else {
    for (const std::size_t token : tokens) {
      const std::span<const double> row = matrix_.row(token);
      part.insert(part.end(), row.begin(), row.end());
      result.offsets.push_back(offsets_[token]);
    }
    center_columns(part, matrix_.width());
    rows = {part.data(), tokens.size(), matrix_.width()};
  }
  result.count = rows.rows();
  for (std::size_t i = 0; i < result.count; ++i) {
    const std::size_t token = tokens.empty() ? i : tokens[i];
    result.lengths.push_back(euclidean_norm(matrix_.row(token)) + std::abs(offsets_[token]));
  }
  center(result.offsets);
  ThinSvd svd = thin_svd(rows, negligible, threads_);
  result.rank = svd.rank;
  result.left = std::move(svd.left);
  result.values = std::move(svd.values);
  return result;
}

std::vector<Fit> fit(const Basis& basis, std::span<const std::vector<double>* const> logits,
                     unsigned threads) {
  std::vector<Fit> fits(logits.size());
  std::vector<double> rows(logits.size() * basis.count);
  for (std::size_t row = 0; row < logits.size(); ++row) {
    fits[row].difference = *logits[row];
    for (std::size_t i = 0; i < basis.count; ++i) fits[row].difference[i] -= basis.offsets[i];
    center(fits[row].difference);
    std::copy(fits[row].difference.begin(), fits[row].difference.end(),
              rows.begin() + static_cast<std::ptrdiff_t>(row * basis.count));
  }
  const MatrixView<double> given(rows.data(), logits.size(), basis.count);
  const MatrixView<const double> left(basis.left.data(), basis.count, basis.rank);
  std::vector<double> inside(logits.size() * basis.rank);
  const MatrixView<double> inside_view(inside.data(), logits.size(), basis.rank);
  product(given, left, inside_view, threads);
  std::vector<double> explained(rows.size());
  product(inside_view, Factor<double>(left).transposed(),
          MatrixView<double>(explained.data(), logits.size(), basis.count), threads);
  for (std::size_t row = 0; row < logits.size(); ++row) {
    Fit& result = fits[row];
    const std::span<const double> coordinates = inside_view.row(row);
    result.inside.assign(coordinates.begin(), coordinates.end());
    result.off = result.difference;
    for (std::size_t i = 0; i < basis.count; ++i) result.off[i] -= explained[row * basis.count + i];
    result.off_size = euclidean_norm(result.off);
    std::vector<double> u = result.inside;
    for (std::size_t k = 0; k < basis.rank; ++k) u[k] /= basis.values[k];
    result.length = euclidean_norm(u);
  }
  return fits;
}

std::vector<double> measure_of_length(const Basis& basis, const Fit& fit) {
  std::vector<double> coordinates = fit.inside;
  const double length = std::max(fit.length, 1e-300);
  for (std::size_t k = 0; k < basis.rank; ++k) coordinates[k] /= basis.values[k] * basis.values[k] * length;
  return combined(basis, coordinates);
}

std::vector<double> step_from_ellipsoid(const Basis& basis, const Fit& fit) {
  std::vector<double> step = fit.off;
  if (!(fit.length > 1.0)) return step;
  std::vector<double> beyond = nearest(basis.values, fit.inside);
  for (std::size_t k = 0; k < basis.rank; ++k) beyond[k] = fit.inside[k] - beyond[k];
  const std::vector<double> in_subspace = combined(basis, beyond);
  for (std::size_t i = 0; i < step.size(); ++i) step[i] += in_subspace[i];
  return step;
}

}  // namespace normscope::signature
