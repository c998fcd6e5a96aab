#include <normscope/norm/curvature.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

#include "kernel_jobs.hpp"

namespace normscope::norm {
namespace {

constexpr std::size_t rows_per_task = 16;

/// Sums over one cell of a row, or over merged cells, of deviations from the cell's mean (layer) or from
/// zero. `weight` is Σ g², `tilt` Σ g² z, `stretched` Σ g² z². The mean is mean + rest, unrounded, so that
/// cells far from zero and close to each other are distinguished.
struct Statistics {
  double mean = 0.0;
  double rest = 0.0;
  double squares = 0.0;
  double weight = 0.0;
  double tilt = 0.0;
  double stretched = 0.0;
};

/// H of one block of `width` entries with those statistics; `eps_length` is √(R² eps), divided like the row.
double measure(const NormSpec& spec, std::size_t width, const Statistics& block, double eps_length) {
  const std::size_t dimension = spec.centers() ? width - 1 : width;
  if (dimension == 0 || block.weight == 0.0) return 0.0;
  const double n = static_cast<double>(dimension);
  const double radius = spec.radius();
  const double r = std::sqrt(block.squares);
  const double s = std::hypot(r, eps_length);
  if (s == 0.0) return dimension == 1 ? 0.0 : std::numeric_limits<double>::infinity();
  if (r == 0.0) return 0.0;
  const double across = (r / s) * (radius / s) / s;
  const double along = 3.0 * across * (eps_length / s) * (eps_length / s);
  const double trace = spec.centers() ? n / static_cast<double>(width) * block.weight : block.weight;
  const double radial = block.stretched / block.squares;
  // In one dimension nothing is orthogonal to z; the computed difference would be rounding.
  const double sideways = dimension == 1 ? 0.0 : std::max(0.0, trace - radial);
  return along * along * radial + across * across * (2.0 * sideways + (n - 1.0) * radial);
}

/// Subtracts the mean from `z` and returns it.
double centered(std::span<double> z) {
  const double middle = mean(z);
  for (double& value : z) value -= middle;
  return middle;
}

/// Statistics of the cell whose entries start at feature `begin`; replaces these entries by their deviations.
Statistics statistics(const NormSpec& spec, std::span<double> z, std::size_t begin) {
  Statistics cell;
  if (spec.centers()) {
    cell.mean = centered(z);
    cell.rest = centered(z);
  }
  cell.squares = sum_of_squares(z);
  if (spec.gain.empty()) {
    cell.weight = static_cast<double>(z.size());
    cell.stretched = cell.squares;
    return cell;
  }
  CompensatedSum weight;
  CompensatedSum tilt;
  CompensatedSum stretched;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double g = spec.gain[begin + i];
    weight.add(g * g);
    tilt.add(g * g * z[i]);
    stretched.add(g * g * z[i] * z[i]);
  }
  cell.weight = weight.value();
  cell.tilt = tilt.value();
  cell.stretched = stretched.value();
  return cell;
}

/// Statistics of a block from those of its cells of `cell_width` entries each.
Statistics merged(const NormSpec& spec, std::span<const Statistics> cells, std::size_t cell_width) {
  if (cells.size() == 1) return cells[0];
  Statistics block;
  const auto mean_shift = [&] {
    CompensatedSum shifts;
    for (const Statistics& cell : cells) shifts.add((cell.mean - block.mean) + (cell.rest - block.rest));
    return shifts.value() / static_cast<double>(cells.size());
  };
  block.mean = mean_shift();
  block.rest = mean_shift();
  CompensatedSum squares;
  CompensatedSum weight;
  CompensatedSum stretched;
  for (const Statistics& cell : cells) {
    const double shift = (cell.mean - block.mean) + (cell.rest - block.rest);
    squares.add(cell.squares);
    squares.add(static_cast<double>(cell_width) * shift * shift);
    weight.add(cell.weight);
    stretched.add(cell.stretched);
    stretched.add(2.0 * shift * cell.tilt);
    stretched.add(shift * shift * cell.weight);
  }
  block.squares = squares.value();
  block.weight = weight.value();
  block.stretched = spec.gain.empty() ? block.squares : std::max(0.0, stretched.value());
  return block;
}

/// The measures of a row divided by 2^`result`, computed for the row divided by a power of two so that no
/// square overflows.
int measure_row(const NormSpec& spec, std::span<const NormSpec> grouped, std::size_t cell_width,
                std::span<double> z, std::span<Statistics> cells, std::span<double> measures) {
  const double largest = largest_size(z);
  if (!std::isfinite(largest)) {
    std::fill(measures.begin(), measures.end(), std::numeric_limits<double>::quiet_NaN());
    return 0;
  }
  BinaryScale size = BinaryScale::of(largest);
  // If eps dominates the entries, the row is scaled so that √eps is near one, because the measure divides by
  // its sixth power.
  if (spec.eps > 0.0) {
    size = BinaryScale::of_exponent(std::max(size.exponent(), std::ilogb(std::sqrt(spec.eps))));
  }
  size.divide(z);
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    cells[cell] = statistics(spec, z.subspan(cell * cell_width, cell_width), cell * cell_width);
  }
  for (std::size_t k = 0; k < grouped.size(); ++k) {
    const std::size_t width = grouped[k].block_width();
    const std::size_t together = width / cell_width;
    const double eps_length = size.divide(std::sqrt(spec.eps)) * grouped[k].radius();
    CompensatedSum total;
    double infinite = 0.0;
    for (std::size_t first = 0; first < cells.size(); first += together) {
      const double h =
          measure(grouped[k], width, merged(spec, cells.subspan(first, together), cell_width), eps_length);
      // A compensated sum of infinities is NaN.
      if (std::isinf(h)) {
        infinite = h;
      } else {
        total.add(h);
      }
    }
    measures[k] = infinite + total.value();
  }
  return -4 * size.exponent();
}

/// Like `curvature_of_groups`, but with the measures of row i divided by 2^result[i], so that they can be
/// compared when they exceed the range of a double: at eps = 0, H of 2^k x is 2^-4k times H of x.
std::vector<int> scaled_curvature_of_groups(const NormSpec& given, MatrixView<const double> x,
                                            std::span<const std::size_t> groups, MatrixView<double> measures,
                                            unsigned threads) {
  validate("curvature", given, x, x);
  NormSpec spec = given;
  const BinaryScale gain_size = BinaryScale::of(spec.gain);
  gain_size.divide(spec.gain);
  std::vector<NormSpec> grouped;
  std::size_t cell_width = 0;
  for (const std::size_t count : groups) {
    // Only kind, sizes and eps of this spec are used; the gain stays in `spec`.
    grouped.push_back({.kind = spec.kind, .width = spec.width, .groups = count, .eps = spec.eps});
    validate(grouped.back());
    cell_width = std::gcd(cell_width, grouped.back().block_width());
  }
  if (measures.rows() != x.rows() || measures.width() != groups.size()) {
    throw Error(ErrorCode::Shape, fmt::format("curvature: measures are {} x {}, expected {} x {}",
                                              measures.rows(), measures.width(), x.rows(), groups.size()));
  }
  std::vector<int> exponents(x.rows());
  if (groups.empty()) return exponents;
  if (spec.elementwise()) {
    for (std::size_t row = 0; row < x.rows(); ++row) {
      // All counts are 1.
      const double measure = detail::elementwise_curvature(spec, x.row(row));
      std::fill(measures.row(row).begin(), measures.row(row).end(), measure);
      exponents[row] = 2 * gain_size.exponent();
    }
    return exponents;
  }
  parallel_for(x.rows(), rows_per_task, threads, [&](std::size_t first, std::size_t last) {
    std::vector<double> z(spec.width);
    std::vector<Statistics> cells(spec.width / cell_width);
    for (std::size_t row = first; row < last; ++row) {
      std::copy(x.row(row).begin(), x.row(row).end(), z.begin());
      exponents[row] =
          2 * gain_size.exponent() + measure_row(spec, grouped, cell_width, z, cells, measures.row(row));
    }
  });
  return exponents;
}

/// Column `count` of `measures`, with row i divided by 2^exponents[i], relative to column `plain`.
GroupCurvature compared(MatrixView<const double> measures, const std::vector<int>& exponents,
                        std::size_t count, std::size_t plain) {
  GroupCurvature result;
  CompensatedSum mean;
  double infinite = 0.0;
  CompensatedSum ratio;
  result.least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < measures.rows(); ++row) {
    const double with_groups = measures.row(row)[count];
    const double without = measures.row(row)[plain];
    if (!std::isfinite(with_groups) || !std::isfinite(without) || without <= 0.0) continue;
    ++result.rows;
    const double measure = std::scalbn(with_groups, exponents[row]);
    // A compensated sum of infinities is NaN.
    if (std::isinf(measure)) infinite = measure;
    mean.add(std::isinf(measure) ? 0.0 : measure);
    ratio.add(with_groups / without);
    result.least = std::min(result.least, with_groups / without);
    result.largest = std::max(result.largest, with_groups / without);
  }
  if (result.rows == 0) {
    result.mean = result.ratio = result.least = result.largest = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  result.mean = infinite + mean.value() / static_cast<double>(result.rows);
  result.ratio = ratio.value() / static_cast<double>(result.rows);
  return result;
}

}  // namespace

void curvature_of_groups(const NormSpec& spec, MatrixView<const double> x,
                         std::span<const std::size_t> groups, MatrixView<double> measures, unsigned threads) {
  const std::vector<int> exponents = scaled_curvature_of_groups(spec, x, groups, measures, threads);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (double& measure : measures.row(row)) measure = std::scalbn(measure, exponents[row]);
  }
}

std::vector<double> curvature(const NormSpec& spec, MatrixView<const double> x, unsigned threads) {
  std::vector<double> measures(x.rows());
  const std::size_t groups[] = {spec.groups};
  curvature_of_groups(spec, x, groups, {measures.data(), x.rows(), 1}, threads);
  return measures;
}

std::optional<double> curvature_ratio_bound(const NormSpec& spec) {
  validate(spec);
  if (spec.eps > 0.0 || spec.block_width() < least_curved_block(spec.kind)) return std::nullopt;
  const double size = std::abs(spec.gain_at(0));
  for (std::size_t i = 0; i < spec.width; ++i) {
    if (std::abs(spec.gain_at(i)) != size || size == 0.0) return std::nullopt;
  }
  const double width = static_cast<double>(spec.width);
  const double groups = static_cast<double>(spec.groups);
  // Directions of a block that the norm removes.
  const double removed = spec.centers() ? 2.0 : 1.0;
  const double ratio = groups * (width - removed * groups) / (width - removed);
  switch (facts(spec.kind).divisor) {
    case Divisor::root_mean_square: return ratio;
    case Divisor::length: return groups * ratio;
    case Divisor::nothing: break;
  }
  return std::nullopt;
}

std::vector<GroupCurvature> compare_groups(const NormSpec& spec, MatrixView<const double> x,
                                           std::span<const std::size_t> groups, unsigned threads,
                                           MatrixView<double> of_rows) {
  if (of_rows.data() != nullptr && (of_rows.rows() != x.rows() || of_rows.width() != groups.size())) {
    throw Error(ErrorCode::Shape, fmt::format("curvature: measures of rows are {} x {}, expected {} x {}",
                                              of_rows.rows(), of_rows.width(), x.rows(), groups.size()));
  }
  std::vector<std::size_t> counts(groups.begin(), groups.end());
  counts.push_back(1);
  std::vector<double> values(x.rows() * counts.size());
  const MatrixView<double> measures(values.data(), x.rows(), counts.size());
  const std::vector<int> exponents = scaled_curvature_of_groups(spec, x, counts, measures, threads);
  std::vector<GroupCurvature> results;
  NormSpec grouped = spec;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    results.push_back(compared(measures, exponents, k, groups.size()));
    grouped.groups = groups[k];
    results.back().groups = groups[k];
    results.back().bound = curvature_ratio_bound(grouped);
  }
  for (std::size_t row = 0; row < of_rows.rows(); ++row) {
    for (std::size_t k = 0; k < groups.size(); ++k) {
      of_rows.row(row)[k] = std::scalbn(measures.row(row)[k], exponents[row]);
    }
  }
  return results;
}

std::vector<std::size_t> curving_group_counts(NormKind kind, std::size_t width) {
  if (is_elementwise(kind)) return {1};
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count * least_curved_block(kind) <= width; ++count) {
    if (width % count == 0) counts.push_back(count);
  }
  return counts;
}

}  // namespace normscope::norm
