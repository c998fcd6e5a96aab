#include <normscope/separability/scatter.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/core.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::separability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Class of each row, numbered from zero, and how many rows each has.
struct Classes {
  std::vector<std::size_t> of_row{};
  std::vector<std::size_t> sizes{};
};

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

Classes checked_classes(MatrixView<const double> x, std::span<const std::size_t> labels) {
  if (x.rows() != labels.size() || x.width() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("separability: x is {} x {} with {} labels, expected a label a row", x.rows(),
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

/// Within and total sum of squares of one centred feature.
struct Squares {
  CompensatedSum within{};
  CompensatedSum total{};

  void add(std::span<const double> feature, const Classes& classes) {
    std::vector<CompensatedSum> sums(classes.sizes.size());
    for (std::size_t row = 0; row < feature.size(); ++row) sums[classes.of_row[row]].add(feature[row]);
    std::vector<double> means;
    for (std::size_t c = 0; c < sums.size(); ++c) {
      means.push_back(sums[c].value() / static_cast<double>(classes.sizes[c]));
    }
    for (std::size_t row = 0; row < feature.size(); ++row) {
      const double deviation = feature[row] - means[classes.of_row[row]];
      within.add(deviation * deviation);
      total.add(feature[row] * feature[row]);
    }
  }
  [[nodiscard]] double ratio() const {
    return total.value() > 0.0 ? std::clamp(within.value() / total.value(), 0.0, 1.0)
                               : std::numeric_limits<double>::quiet_NaN();
  }
};

/// Feature `index` about its mean; exactly zero where it is constant, whatever the mean rounds to.
std::vector<double> centred_feature(MatrixView<const double> x, std::size_t index) {
  std::vector<double> feature;
  for (std::size_t row = 0; row < x.rows(); ++row) feature.push_back(x.row(row)[index]);
  const auto [low, high] = std::minmax_element(feature.begin(), feature.end());
  if (feature.empty() || *low == *high) return std::vector<double>(feature.size());
  for (int pass = 0; pass < 2; ++pass) {
    const double center = mean(feature);
    for (double& value : feature) value -= center;
  }
  return feature;
}

/// The centred rows, each feature divided by a power of two near its length.
struct Centred {
  MatrixXd rows{};
  std::vector<int> exponents{};

  explicit Centred(MatrixView<const double> x)
      : rows(static_cast<Index>(x.rows()), static_cast<Index>(x.width())) {
    for (std::size_t i = 0; i < x.width(); ++i) {
      const std::vector<double> feature = centred_feature(x, i);
      const double length = euclidean_norm(feature);
      exponents.push_back(length > 0.0 && std::isfinite(length) ? std::ilogb(length) : 0);
      for (std::size_t row = 0; row < x.rows(); ++row) {
        rows(static_cast<Index>(row), static_cast<Index>(i)) = std::scalbn(feature[row], -exponents.back());
      }
    }
  }
};

/// Unit vector q that is longest under the columns of `means`, which are class means in coordinates where
/// the total scatter is the identity: |meansᵀ q|² is then the share between classes.
VectorXd most_spread(const MatrixXd& means) {
  const bool few_classes = means.cols() <= means.rows();
  const MatrixXd gram =
      few_classes ? MatrixXd(means.transpose() * means) : MatrixXd(means * means.transpose());
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(gram);
  const VectorXd last = solver.eigenvectors().col(gram.cols() - 1);
  VectorXd q = few_classes ? VectorXd(means * last) : last;
  // All class means agree: every direction is as good.
  if (!(q.norm() > 0.0)) q = VectorXd::Unit(means.rows(), 0);
  return q.normalized();
}

}  // namespace

double sum_of_squares(MatrixView<const double> x) {
  CompensatedSum total;
  for (std::size_t i = 0; i < x.width(); ++i) {
    for (const double value : centred_feature(x, i)) total.add(value * value);
  }
  return total.value();
}

double sum_of_squares_ratio(MatrixView<const double> x, std::span<const std::size_t> labels) {
  const Classes classes = checked_classes(x, labels);
  Squares squares;
  for (std::size_t i = 0; i < x.width(); ++i) squares.add(centred_feature(x, i), classes);
  return squares.ratio();
}

LinearRatio linear_ratio(MatrixView<const double> x, std::span<const std::size_t> labels) {
  const Classes classes = checked_classes(x, labels);
  const Centred centred(x);
  LinearRatio result;
  result.rank_tolerance = static_cast<double>(std::max(x.rows(), x.width())) * 0x1p-52;
  Eigen::CompleteOrthogonalDecomposition<MatrixXd> decomposition;
  decomposition.setThreshold(result.rank_tolerance);
  decomposition.compute(centred.rows);
  const Index rank = decomposition.rank();
  result.rank = static_cast<std::size_t>(rank);
  if (rank == 0) {
    result.ratio = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  // Class c is the column of 1/√m_c on its rows; Qᵀ takes it to its mean times √m_c.
  const Index class_count = static_cast<Index>(classes.sizes.size());
  MatrixXd means = MatrixXd::Zero(centred.rows.rows(), class_count);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    const std::size_t c = classes.of_row[row];
    means(static_cast<Index>(row), static_cast<Index>(c)) =
        1.0 / std::sqrt(static_cast<double>(classes.sizes[c]));
  }
  means.applyOnTheLeft(decomposition.householderQ().adjoint());
  VectorXd target = VectorXd::Zero(centred.rows.rows());
  target.head(rank) = most_spread(means.topRows(rank));
  target.applyOnTheLeft(decomposition.householderQ());
  const VectorXd direction = decomposition.solve(target);

  const VectorXd projected = centred.rows * direction;
  std::vector<double> feature(projected.data(), projected.data() + projected.size());
  const double center = mean(feature);
  for (double& value : feature) value -= center;
  Squares squares;
  squares.add(feature, classes);
  result.ratio = squares.ratio();
  for (std::size_t i = 0; i < x.width(); ++i) {
    result.direction.push_back(std::scalbn(direction[static_cast<Index>(i)], -centred.exponents[i]));
  }
  const double length = euclidean_norm(result.direction);
  for (double& value : result.direction) value /= length;
  return result;
}

}  // namespace normscope::separability
