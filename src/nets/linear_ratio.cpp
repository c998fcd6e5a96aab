#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <Eigen/Core>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/eigen/decompositions.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/sum.hpp>
#include <normscope/nets/scatter.hpp>

#include "classes.hpp"
#include "tall.hpp"

namespace normscope::nets {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t rows_a_piece = 64;

/// Centred features divided by powers of two so that their lengths are near 1, and the class means in these
/// units.
struct Frame {
  std::vector<BinaryScale> scales{};
  std::vector<double> centers{};  ///< divided
  MatrixXd class_means{};         ///< (classes, width), divided

  Frame(MatrixView<const double> x, const Classes& classes, unsigned threads)
      : scales(x.width()),
        centers(x.width()),
        class_means(static_cast<Index>(classes.sizes.size()), static_cast<Index>(x.width())) {
    for_each_feature(x, threads, [&](std::size_t i, std::span<double> feature) {
      const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
      const bool constant = *low == *high;
      const BinaryScale rough = constant ? BinaryScale::of(*low) : scale_of(feature);
      rough.divide(feature);
      const double center = constant ? feature[0] : mean(feature);
      for (double& value : feature) value -= center;
      const double length = euclidean_norm(feature);
      const BinaryScale rest = BinaryScale::of(length);
      rest.divide(feature);
      scales[i] = BinaryScale::of_exponent(rough.exponent() + rest.exponent());
      centers[i] = rest.divide(center);
      const std::vector<double> means = nets::class_means(feature, classes);
      for (std::size_t c = 0; c < means.size(); ++c) {
        class_means(static_cast<Index>(c), static_cast<Index>(i)) = means[c];
      }
    });
  }

  [[nodiscard]] double entry(std::span<const double> row, std::size_t i) const {
    return scales[i].divide(row[i]) - centers[i];
  }
  /// Converts a direction to the original features by a power of two per entry. Entries below a double's
  /// range are lost.
  [[nodiscard]] std::vector<double> given(const VectorXd& direction) const {
    int least = std::numeric_limits<int>::max();
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if (direction[static_cast<Index>(i)] != 0.0) least = std::min(least, scales[i].exponent());
    }
    std::vector<double> result;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      result.push_back(std::scalbn(direction[static_cast<Index>(i)], least - scales[i].exponent()));
    }
    return result;
  }
};

/// R_W with R_WᵀR_W the scatter within classes.
MatrixXd within_triangle(MatrixView<const double> x, const Classes& classes, const Frame& frame,
                         unsigned threads, const Progress& progress) {
  const auto fill = [&](Index first, MatrixXd& block) {
    for (Index row = 0; row < block.rows(); ++row) {
      const std::size_t at = static_cast<std::size_t>(first + row);
      const Index c = static_cast<Index>(classes.of_row[at]);
      for (Index i = 0; i < block.cols(); ++i) {
        block(row, i) = frame.entry(x.row(at), static_cast<std::size_t>(i)) - frame.class_means(c, i);
      }
    }
  };
  return triangle_of(static_cast<Index>(x.rows()), static_cast<Index>(x.width()), fill, threads, progress);
}

/// R_B with R_BᵀR_B the scatter between classes: of the rows √m_c (mean_c − mean).
MatrixXd between_triangle(const Classes& classes, const Frame& frame, unsigned threads,
                          const Progress& progress) {
  const MatrixXd& means = frame.class_means;
  const double rows = static_cast<double>(classes.of_row.size());
  // The rounding error of the mean of all rows.
  VectorXd middle(means.cols());
  for (Index i = 0; i < means.cols(); ++i) {
    CompensatedSum total;
    for (Index c = 0; c < means.rows(); ++c) {
      total.add(static_cast<double>(classes.sizes[static_cast<std::size_t>(c)]) * means(c, i));
    }
    middle[i] = total.value() / rows;
  }
  const auto fill = [&](Index first, MatrixXd& block) {
    for (Index c = 0; c < block.rows(); ++c) {
      const double weight =
          std::sqrt(static_cast<double>(classes.sizes[static_cast<std::size_t>(first + c)]));
      block.row(c) = weight * (means.row(first + c) - middle.transpose());
    }
  };
  return triangle_of(means.rows(), means.cols(), fill, threads, progress);
}

/// The unit vector q that maximizes |meansᵀ q|, for class means in coordinates where the total scatter is the
/// identity; the square is then the between-class fraction.
VectorXd most_spread(const MatrixXd& means) {
  const bool few_classes = means.cols() <= means.rows();
  const MatrixXd gram =
      few_classes ? MatrixXd(means.transpose() * means) : MatrixXd(means * means.transpose());
  const VectorXd last = symmetric_eigen(gram).vectors.col(gram.cols() - 1);
  VectorXd q = few_classes ? VectorXd(means * last) : last;
  // All class means are equal, so every direction is as good.
  if (!(q.norm() > 0.0)) q = VectorXd::Unit(means.rows(), 0);
  return q.normalized();
}

/// The centred rows along a direction of the frame, with sums in about twice the precision, because the
/// result may be far smaller than the terms.
std::vector<double> projected(MatrixView<const double> x, const Frame& frame, const VectorXd& direction,
                              unsigned threads) {
  std::vector<double> feature(x.rows());
  parallel_for(x.rows(), rows_a_piece, threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) {
      const std::span<const double> values = x.row(row);
      ExactSum total;
      for (std::size_t i = 0; i < values.size(); ++i) {
        total.add(two_sum(frame.scales[i].divide(values[i]), -frame.centers[i]),
                  direction[static_cast<Index>(i)]);
      }
      feature[row] = total.result().value;
    }
  });
  center(feature);
  return feature;
}

}  // namespace

LinearRatio linear_ratio(MatrixView<const double> x, std::span<const std::size_t> labels, unsigned threads,
                         const Progress& progress) {
  const Classes classes = checked_classes(x, labels);
  const Frame frame(x, classes, threads);
  const MatrixXd within = within_triangle(x, classes, frame, threads, progress);
  const MatrixXd between = between_triangle(classes, frame, threads, progress);
  // An orthogonal map of all centred rows, up to rows of zeros: S_T = R_WᵀR_W + R_BᵀR_B.
  MatrixXd both(within.rows() + between.rows(), within.cols());
  both << within, between;

  LinearRatio result;
  result.rank_tolerance = static_cast<double>(std::max(x.rows(), x.width())) * 0x1p-52;
  const CompleteOrthogonal decomposition(both, result.rank_tolerance);
  const Index rank = decomposition.rank();
  result.rank = static_cast<std::size_t>(rank);
  if (rank == 0) {
    result.ratio = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  MatrixXd means = MatrixXd::Zero(both.rows(), between.rows());
  means.bottomRows(between.rows()).setIdentity();
  means = decomposition.to_basis(std::move(means));
  VectorXd target = VectorXd::Zero(both.rows());
  target.head(rank) = most_spread(means.topRows(rank));
  VectorXd direction = decomposition.solve(decomposition.from_basis(target));

  // Computed for the returned direction, so that ratio and direction agree; powers of two round nothing.
  direction /= euclidean_norm(frame.given(direction));
  result.direction = frame.given(direction);
  result.ratio = squares_of(projected(x, frame, direction, threads), classes).ratio();
  return result;
}

}  // namespace normscope::nets
