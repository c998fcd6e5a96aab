#include <normscope/nets/scatter.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <Eigen/Core>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/view.hpp>

namespace normscope::nets {

/// Class of each row, numbered from zero, and how many rows each has.
struct Classes {
  std::vector<std::size_t> of_row{};
  std::vector<std::size_t> sizes{};
};

/// The classes of `labels`.
///
/// Errors    Shape; Argument for less than two of them or an entry that is not finite
[[nodiscard]] Classes checked_classes(MatrixView<const double> x, std::span<const std::size_t> labels);

/// Mean of each class of one feature, compensated.
[[nodiscard]] std::vector<double> class_means(std::span<const double> feature, const Classes& classes);

/// Within-class and total sum of squares.
struct Squares {
  double within = 0.0;
  double total = 0.0;

  /// Within over total, in [0, 1]; NaN for none.
  [[nodiscard]] double ratio() const;
};

/// The sums of one centred feature.
[[nodiscard]] Squares squares_of(std::span<const double> feature, const Classes& classes);

/// Calls `body(index, feature)` for each column of `x`, which it may change, in any order.
void for_each_feature(MatrixView<const double> x, unsigned threads,
                      const std::function<void(std::size_t, std::span<double>)>& body);

/// The divisor of all features: the power of two at the largest difference of two entries of one feature, so
/// that squares neither overflow nor underflow.
[[nodiscard]] BinaryScale common_scale(MatrixView<const double> x, unsigned threads);

/// The scale of one feature.
[[nodiscard]] BinaryScale scale_of(std::span<const double> feature);

/// Divides a feature and centres it; a constant feature becomes exactly zero, whatever the rounding of its
/// mean.
void center_feature(std::span<double> feature, const BinaryScale& scale);

/// R of a QR decomposition A = QR, min(rows, width) × width, of a matrix that `fill` writes in blocks of
/// rows, starting at row `first`. Blocks are triangularized separately, then merged in pairs. Their sizes and
/// order depend only on the shape, so results are bitwise independent of the threads.
///
/// Source    [Demmel, Grigori, Hoemmen, Langou 2012, TSQR]
///
/// Cost      2 rows · width² plus a quarter; memory for one block per thread and all triangles
[[nodiscard]] Eigen::MatrixXd triangle_of(
    Eigen::Index rows, Eigen::Index width,
    const std::function<void(Eigen::Index first, Eigen::MatrixXd& block)>& fill, unsigned threads,
    const Progress& progress);

namespace {

using Eigen::Index;
using Eigen::MatrixXd;

MatrixXd stacked(const MatrixXd& above, const MatrixXd& below) {
  MatrixXd both(above.rows() + below.rows(), above.cols());
  both << above, below;
  return both;
}

/// Smallest number of rows of a block, such that merging triangles is the smaller part of the work.
Index scatter_block_rows(Index width) { return std::max<Index>(256, 4 * width); }

}  // namespace

MatrixXd triangle_of(Index rows, Index width, const std::function<void(Index, MatrixXd&)>& fill,
                     unsigned threads, const Progress& progress) {
  const Index blocks = std::max<Index>(1, rows / scatter_block_rows(width));
  std::vector<MatrixXd> triangles(static_cast<std::size_t>(blocks));
  std::mutex reporting;
  std::size_t done = 0;
  const std::size_t steps = 2 * triangles.size() - 1;
  const auto report = [&] {
    const std::lock_guard lock(reporting);
    progress("triangularizing", ++done, steps);
  };
  parallel_for(triangles.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      const Index first = rows * static_cast<Index>(block) / blocks;
      const Index last = rows * static_cast<Index>(block + 1) / blocks;
      MatrixXd piece(last - first, width);
      fill(first, piece);
      triangles[block] = normscope::triangle_of(std::move(piece));
      report();
    }
  });
  for (std::size_t apart = 1; apart < triangles.size(); apart *= 2) {
    const std::size_t pairs = (triangles.size() - apart + 2 * apart - 1) / (2 * apart);
    parallel_for(pairs, 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t pair = begin; pair < end; ++pair) {
        MatrixXd& above = triangles[2 * apart * pair];
        MatrixXd& below = triangles[2 * apart * pair + apart];
        above = normscope::triangle_of(stacked(above, below));
        below.resize(0, 0);
        report();
      }
    });
  }
  return std::move(triangles.front());
}

namespace {

Classes classes_of(std::span<const std::size_t> labels) {
  Classes classes;
  std::map<std::size_t, std::size_t> numbers;
  for (const std::size_t label : labels) {
    const auto [at, added] = numbers.try_emplace(label, numbers.size());
    if (added) classes.sizes.push_back(0);
    classes.of_row.push_back(at->second);
    ++classes.sizes[at->second];
  }
  return classes;
}

}  // namespace

Classes checked_classes(MatrixView<const double> x, std::span<const std::size_t> labels) {
  if (x.rows() != labels.size() || x.width() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("separability: x is {} x {} with {} labels, expected one label per row", x.rows(),
                            x.width(), labels.size()));
  }
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (const double value : x.row(row)) {
      if (!std::isfinite(value)) {
        throw Error(ErrorCode::Argument,
                    fmt::format("separability: row {} has {}, expected finite numbers", row, value));
      }
    }
  }
  Classes classes = classes_of(labels);
  if (classes.sizes.size() < 2) {
    throw Error(ErrorCode::Argument, fmt::format("separability: labels name {} classes, expected at least 2",
                                                 classes.sizes.size()));
  }
  return classes;
}

std::vector<double> class_means(std::span<const double> feature, const Classes& classes) {
  std::vector<CompensatedSum> sums(classes.sizes.size());
  for (std::size_t row = 0; row < feature.size(); ++row) sums[classes.of_row[row]].add(feature[row]);
  std::vector<double> means;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    means.push_back(sums[c].value() / static_cast<double>(classes.sizes[c]));
  }
  return means;
}

double Squares::ratio() const {
  return total > 0.0 ? std::clamp(within / total, 0.0, 1.0) : std::numeric_limits<double>::quiet_NaN();
}

Squares squares_of(std::span<const double> feature, const Classes& classes) {
  const std::vector<double> means = class_means(feature, classes);
  CompensatedSum within;
  CompensatedSum total;
  for (std::size_t row = 0; row < feature.size(); ++row) {
    const double deviation = feature[row] - means[classes.of_row[row]];
    within.add(deviation * deviation);
    total.add(feature[row] * feature[row]);
  }
  return {within.value(), total.value()};
}

void for_each_feature(MatrixView<const double> x, unsigned threads,
                      const std::function<void(std::size_t, std::span<double>)>& body) {
  // As many features as share a cache line of a row, which is then read once for all.
  constexpr std::size_t together = 8;
  const std::size_t runs = (x.width() + together - 1) / together;
  parallel_for(runs, 1, threads, [&](std::size_t first_run, std::size_t last_run) {
    std::vector<double> features(together * x.rows());
    for (std::size_t run = first_run; run < last_run; ++run) {
      const std::size_t first = run * together;
      const std::size_t count = std::min(together, x.width() - first);
      for (std::size_t row = 0; row < x.rows(); ++row) {
        const std::span<const double> values = x.row(row).subspan(first, count);
        for (std::size_t i = 0; i < count; ++i) features[i * x.rows() + row] = values[i];
      }
      for (std::size_t i = 0; i < count; ++i) body(first + i, {features.data() + i * x.rows(), x.rows()});
    }
  });
}

BinaryScale scale_of(std::span<const double> feature) {
  if (feature.empty()) return {};
  const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
  const double difference = *high - *low;
  return BinaryScale::of(std::isfinite(difference) ? difference : std::numeric_limits<double>::max());
}

BinaryScale common_scale(MatrixView<const double> x, unsigned threads) {
  std::vector<double> differences(x.width());
  for_each_feature(x, threads, [&](std::size_t index, std::span<double> feature) {
    if (feature.empty()) return;
    const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
    differences[index] = std::min(*high - *low, std::numeric_limits<double>::max());
  });
  return BinaryScale::of(differences);
}

void center_feature(std::span<double> feature, const BinaryScale& scale) {
  if (feature.empty()) return;
  const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
  if (*low == *high) return std::fill(feature.begin(), feature.end(), 0.0);
  scale.divide(feature);
  center(feature);
}

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

double sum_of_squares(MatrixView<const double> x) {
  const BinaryScale scale = common_scale(x, 1);
  std::vector<double> squares(x.width());
  for_each_feature(x, 1, [&](std::size_t index, std::span<double> feature) {
    center_feature(feature, scale);
    squares[index] = normscope::sum_of_squares(feature);
  });
  return std::scalbn(sum(squares), 2 * scale.exponent());
}

double sum_of_squares_ratio(MatrixView<const double> x, std::span<const std::size_t> labels,
                            unsigned threads) {
  const Classes classes = checked_classes(x, labels);
  const BinaryScale scale = common_scale(x, threads);
  std::vector<double> within(x.width());
  std::vector<double> total(x.width());
  for_each_feature(x, threads, [&](std::size_t index, std::span<double> feature) {
    center_feature(feature, scale);
    const Squares squares = squares_of(feature, classes);
    within[index] = squares.within;
    total[index] = squares.total;
  });
  return Squares{sum(within), sum(total)}.ratio();
}

}  // namespace normscope::nets
