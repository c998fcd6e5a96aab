#include <normscope/signature/extract.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/snapshot.hpp>

#include "quadric.hpp"
#include "subspace.hpp"

namespace normscope::signature {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr SnapshotKind state_kind{.name = "signature", .version = 1, .others = "other outputs or options"};
constexpr std::chrono::seconds state_saved_every{30};
/// Typical number of iterations if there are twice as many rows as unknowns; used for progress reports only.
constexpr std::size_t usual_rounds = 80;
/// Standard deviations in a stated error.
constexpr double deviations = 3.0;

void expect_enough(const Outputs& outputs, const Subspace& subspace, std::size_t rows, const char* which) {
  if (rows >= unknowns(subspace.rank)) return;
  throw Error(
      ErrorCode::Argument,
      fmt::format("{}: has {} {}, expected at least {} for an ellipse of {} axes, better twice as many",
                  outputs.name(), rows, which, unknowns(subspace.rank), subspace.rank));
}

/// Identifies the fit: its coordinates depend only on this and on the rows.
Digest state_fingerprint(const Coordinates& points, std::size_t rank) {
  Packer inputs;
  inputs.put(points.rows);
  inputs.put(rank);
  inputs.put(points.distinct);
  inputs.put(std::vector<double>(points.mean.data(), points.mean.data() + points.mean.size()));
  inputs.put(std::vector<double>(points.colour.data(), points.colour.data() + points.colour.size()));
  return sha256(inputs.bytes());
}

/// Continues from the state in the file, if there is one.
void load_state(ConjugateGradients& fit, const Digest& fingerprint, const ExtractOptions& options) {
  std::vector<std::byte> payload;
  if (options.team->is_first() && std::filesystem::exists(options.resume)) {
    payload = load_snapshot(options.resume, state_kind, fingerprint);
  }
  payload = gathered(payload, *options.team).front();
  if (payload.empty()) return;
  Unpacker from(payload, fmt::format("{}: holds what signature did not save; delete it to start again",
                                     options.resume.string()));
  fit.load(from);
  from.finish();
}

/// Runs the iterations and saves their state.
void run_rounds(ConjugateGradients& fit, const Coordinates& points, std::size_t rank,
                const ExtractOptions& options) {
  const Digest fingerprint = options.resume.empty() ? Digest{} : state_fingerprint(points, rank);
  if (!options.resume.empty()) load_state(fit, fingerprint, options);
  const auto save = [&] {
    if (options.resume.empty() || !options.team->is_first()) return;
    Packer to;
    fit.save(to);
    save_snapshot(options.resume, state_kind, fingerprint, to.bytes());
  };
  auto saved = std::chrono::steady_clock::now();
  do {
    // All members stop after the same round.
    try {
      together(*options.team, [&] {
        options.progress(fmt::format("rounds, residual {:.2g}:", fit.residual()), fit.rounds(),
                         std::max(usual_rounds, fit.rounds() + 1));
      });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Cancelled) throw;
      save();
      // An error ends all members; none may have one before the first has saved.
      (void)options.team->any(true);
      throw;
    }
    if (std::chrono::steady_clock::now() - saved >= state_saved_every) {
      save();
      saved = std::chrono::steady_clock::now();
    }
  } while (fit.round());
  save();
  options.progress("rounds", fit.rounds(), fit.rounds());
}

/// The ellipsoid {x: xᵀAx + v·x + k = 0} with A = I + `quadric.matrix`.
struct Shape {
  VectorXd eigenvalues;  ///< of A
  MatrixXd eigenvectors;
  VectorXd centre;
  double level = 0.0;  ///< (x − centre)ᵀ A (x − centre) on it
};

std::optional<Shape> shape_of(const Quadric& quadric) {
  const auto size = static_cast<Index>(quadric.linear.size());
  const MatrixXd matrix = MatrixXd::Identity(size, size) + row_major(quadric.matrix, size, size);
  if (!matrix.allFinite()) return std::nullopt;
  SymmetricEigen eigen = symmetric_eigen(matrix);
  if (!(eigen.values[0] > 0.0)) return std::nullopt;
  const VectorXd linear = Eigen::Map<const VectorXd>(quadric.linear.data(), size);
  Shape shape;
  shape.centre = -0.5 * (eigen.vectors * (eigen.vectors.transpose() * linear).cwiseQuotient(eigen.values));
  shape.level = shape.centre.dot(matrix * shape.centre) - quadric.constant;
  shape.eigenvalues = std::move(eigen.values);
  shape.eigenvectors = std::move(eigen.vectors);
  if (!(shape.level > 0.0)) return std::nullopt;
  return shape;
}

std::vector<double> times_basis(const Subspace& subspace, const MatrixXd& columns, unsigned threads) {
  std::vector<double> factor(static_cast<std::size_t>(columns.size()));
  row_major(factor, columns.rows(), columns.cols()) = columns;
  const auto width = static_cast<std::size_t>(columns.cols());
  std::vector<double> result(subspace.tokens * width);
  product(MatrixView<const double>(subspace.basis.data(), subspace.tokens, subspace.rank),
          MatrixView<const double>(factor.data(), subspace.rank, width),
          MatrixView<double>(result.data(), subspace.tokens, width), threads);
  return result;
}

/// Semi-axes, axes and their errors in the space of logits.
///
/// With y = L x and residuals of standard deviation s, a semi-axis a along l has
///   δ(a²)/a² = −level gᵀ δA g/a² + δlevel/level,  g = A⁻¹ Lᵀ l,
/// and the solution varies by s²/(eigenvalue · n · (2, or 1)) along each unit direction of the preconditioned
/// problem. Noise of variance η in every coordinate makes a² larger by rank · η, as |u|² = 1 spreads over
/// all.
void measure_axes(const Shape& shape, const Coordinates& points, const Subspace& subspace, double deviation,
                  double least_ritz, double noise, unsigned threads, Ellipse& result) {
  const MatrixXd stretched = points.colour * shape.eigenvectors *
                             (shape.level * shape.eigenvalues.cwiseInverse()).cwiseSqrt().asDiagonal();
  const auto rank = static_cast<Index>(subspace.rank);
  std::vector<double> matrix(subspace.rank * subspace.rank);
  row_major(matrix, rank, rank) = stretched;
  const Svd svd = singular_value_decomposition(
      MatrixView<const double>(matrix.data(), subspace.rank, subspace.rank), SingularVectors::left);
  const MatrixXd axes = row_major(svd.left, rank, rank);
  result.semi_axes = svd.values;
  result.axes = times_basis(subspace, axes, threads);
  const MatrixXd g = shape.eigenvectors * shape.eigenvalues.cwiseInverse().asDiagonal() *
                     (shape.eigenvectors.transpose() * (points.colour.transpose() * axes));
  const double rows = static_cast<double>(points.rows);
  const double of_solution = deviations * deviation / std::sqrt(rows * std::max(least_ritz, 1e-12));
  for (Index i = 0; i < rank; ++i) {
    const double square = svd.values[static_cast<std::size_t>(i)] * svd.values[static_cast<std::size_t>(i)];
    const double from_fit =
        0.5 * of_solution *
        (shape.level * g.col(i).squaredNorm() / square / std::sqrt(2.0) + 1.0 / shape.level);
    const double from_noise = 0.5 * static_cast<double>(rank) * noise * noise / square;
    const double from_rounding =
        16.0 * unit_roundoff * static_cast<double>(rank) * svd.values[0] / std::sqrt(square);
    result.errors.push_back(square > 0.0 ? from_fit + from_noise + from_rounding : 1.0);
  }
}

}  // namespace

Extraction extract(const Outputs& outputs, const Subspace& subspace, const ExtractOptions& options) {
  if (subspace.rank == 0) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: has the same row throughout, expected different outputs", outputs.name()));
  }
  if (subspace.rank + 1 >= subspace.tokens) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("{}: rows fill all {} dimensions that logits of {} tokens have, expected a vocabulary "
                    "larger than the width: there is no surface to find",
                    outputs.name(), subspace.rank, subspace.tokens));
  }
  if (options.team->size() > RowSlices::count) {
    throw Error(ErrorCode::Argument, fmt::format("signature: {} processes, expected at most {}",
                                                 options.team->size(), RowSlices::count));
  }
  expect_enough(outputs, subspace, outputs.rows(), "rows");
  const RowSlices slices(outputs.rows(), *options.team);
  const Coordinates points = coordinates(outputs, subspace, slices, options);
  expect_enough(outputs, subspace, points.distinct, "different rows");
  const Design design(points.view(subspace.rank), slices, options.threads);
  ConjugateGradients fit(design);
  run_rounds(fit, points, subspace.rank, options);

  Extraction result{.rows = points.rows, .distinct = points.distinct, .rounds = fit.rounds()};
  const std::optional<Shape> shape = shape_of(fit.found());
  // The residual is computed again, because a resumed state is not trusted.
  Quadric whole = fit.found();
  for (std::size_t i = 0; i < subspace.rank; ++i) whole.matrix[i * subspace.rank + i] += 1.0;
  std::vector<double> values;
  design.values(whole, Design::Arithmetic::float64, values);
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  const double rows = static_cast<double>(points.rows);
  const double level = shape ? shape->level : static_cast<double>(subspace.rank);
  result.surface = std::sqrt(squares / rows) / (2.0 * level);
  result.relative_surface = result.surface * std::sqrt(2.0 * static_cast<double>(subspace.rank));
  if (!shape || !(result.relative_surface <= on_an_ellipse)) return result;

  const ConjugateGradients::Ritz ritz = fit.ritz();
  const double spare = std::max(1.0, rows - static_cast<double>(unknowns(subspace.rank)));
  Ellipse ellipse{.tokens = subspace.tokens, .rank = subspace.rank, .centre = subspace.middle};
  const std::vector<double> shift =
      times_basis(subspace, points.mean + points.colour * shape->centre, options.threads);
  for (std::size_t i = 0; i < ellipse.tokens; ++i) ellipse.centre[i] += shift[i];
  measure_axes(*shape, points, subspace, std::sqrt(squares / spare), ritz.least, points.off, options.threads,
               ellipse);
  ellipse.rows = points.rows;
  ellipse.surface = result.surface;
  ellipse.off = points.off;
  ellipse.precision = outputs.precision().dtype;
  ellipse.rounds = fit.rounds();
  ellipse.least_ritz = ritz.least;
  ellipse.largest_ritz = ritz.largest;
  result.ellipse = std::move(ellipse);
  return result;
}

}  // namespace normscope::signature
