#include "rotary_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/ball.hpp>

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Doublings d of the smoothed maximum, of order 1 + 2^d, and iterations at each.
constexpr std::array<std::pair<int, int>, 5> schedule = {{{2, 3}, {3, 4}, {4, 4}, {5, 4}, {6, 3}}};
/// Contributions below this fraction of the total do not change a weight.
constexpr double least_share = 1e-12;

/// Applies f to the eigenvalues of a symmetric matrix.
template <typename Function>
MatrixXd spectral(const MatrixXd& symmetric, const Function& function) {
  const SymmetricEigen eigen = symmetric_eigen(symmetric);
  const VectorXd values = eigen.values.unaryExpr(function);
  return eigen.vectors * values.asDiagonal() * eigen.vectors.transpose();
}

/// Any positive weight proves a bound; the squares of these stay within a double's range.
double moderate(double weight) { return std::clamp(weight, 0x1p-190, 0x1p190); }

/// `gram` plus a small multiple of I, which makes it invertible.
MatrixXd lifted(MatrixXd gram) {
  const double trace = gram.trace();
  gram.diagonal().array() += trace > 0.0 ? 1e-12 * trace : 1.0;
  return gram;
}

}  // namespace

/// The contributions of each pair, and of the coordinates that do not rotate, to the smoothed maximum of one
/// side.
struct RotaryWeights::Shares {
  MatrixXd still;
  VectorXd pairs;
};

/// Bounds max |M u + m| over the ball by the norm of [√(1+κ²) M, √(1+1/κ²) m], with equality at the best κ;
/// the maximum is smoothed.
struct RotaryWeights::Smoothed {
  double logarithm = 0.0;  ///< of κ²
  bool started = false;

  Shares shares(const Stacked& side, Index still, int doublings) {
    const bool moves = side.map.squaredNorm() > 0.0;
    const bool shifts = side.constant.squaredNorm() > 0.0;
    MatrixXd whole = side.map;
    if (shifts && moves && !started) {
      logarithm =
          std::log(side.constant.norm() * std::sqrt(static_cast<double>(side.map.cols())) / side.map.norm());
      logarithm = std::clamp(logarithm, -14.0, 14.0);
      started = true;
    }
    if (shifts) {
      const double square = std::exp(logarithm);
      whole.conservativeResize(Eigen::NoChange, whole.cols() + 1);
      if (moves) {
        whole *= std::sqrt(1.0 + square);
        whole.rightCols(1) = std::sqrt(1.0 + 1.0 / square) * side.constant;
      } else {
        whole.rightCols(1) = side.constant;
      }
    }
    // float32 suffices for weights: any of them prove a bound. The matrix of still coordinates has
    // logarithms.
    return still == 0 ? shares_of<float>(std::move(whole), still, doublings, shifts && moves)
                      : shares_of<double>(std::move(whole), still, doublings, shifts && moves);
  }

  template <typename T>
  Shares shares_of(MatrixXd given, Index still, int doublings, bool fits) {
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    const double size = given.norm();
    const Matrix whole = (given / (size > 0.0 ? size : 1.0)).template cast<T>();
    // Columns in memory are rows of the transpose.
    const auto rows = static_cast<std::size_t>(whole.rows());
    const auto columns = static_cast<std::size_t>(whole.cols());
    const auto least = static_cast<T>(1e-30);
    Matrix density(whole.cols(), whole.cols());
    Matrix square(whole.cols(), whole.cols());
    const Factor<T> back(whole.data(), columns, rows, rows);
    const auto normalize = [&] { density /= std::max(density.trace(), least); };
    multiply(back, back.transposed(), MatrixView<T>(density.data(), columns, columns));
    normalize();
    for (int i = 0; i < doublings; ++i) {
      const Factor<T> factor(density.data(), columns, columns, columns);
      multiply(factor, factor, MatrixView<T>(square.data(), columns, columns));
      density.swap(square);
      normalize();
    }
    if (fits) {
      const double last =
          std::clamp<double>(density(density.rows() - 1, density.cols() - 1), least_share, 1.0 - least_share);
      logarithm += (std::log(last / (1.0 - last)) - logarithm) / (1.0 + std::ldexp(1.0, doublings));
      logarithm = std::clamp(logarithm, -20.0, 20.0);
    }
    Matrix weighted(whole.rows(), whole.cols());
    // The density is symmetric.
    multiply(Factor<T>(density.data(), columns, columns, columns), back,
             MatrixView<T>(weighted.data(), columns, rows));
    Shares result{(weighted.topRows(still) * whole.topRows(still).transpose()).template cast<double>(),
                  VectorXd((whole.rows() - still) / 2)};
    const VectorXd each = weighted.cwiseProduct(whole).rowwise().sum().template cast<double>();
    const double total = std::max(each.sum(), 1e-300);
    result.still = (0.5 / total) * (result.still + result.still.transpose()).eval();
    for (Index j = 0; j < result.pairs.size(); ++j) {
      result.pairs[j] = (each[still + 2 * j] + each[still + 2 * j + 1]) / total;
    }
    return result;
  }
};

RotaryWeights::RotaryWeights(const RotaryScores& scores, double slowest_turn)
    : scores_(scores),
      key_map_(scores.key),
      key_constant_(scores.key_constant),
      slow_(static_cast<std::size_t>(scores.pairs), false),
      weights_(VectorXd::Ones(scores.pairs)),
      turns_(VectorXd::Ones(scores.pairs)) {
  for (Index j = 0; j < scores.pairs; ++j) {
    if (slowest_turn <= 0.0) break;
    const double frequency = scores.frequencies[static_cast<std::size_t>(j)];
    const double turn = std::abs(frequency) * static_cast<double>(scores.distances - 1);
    if (turn > slowest_turn) continue;
    slow_[static_cast<std::size_t>(j)] = true;
    turns_[j] = 2.0 * std::sin(0.25 * turn) * (1.0 + 1e-9) + 1e-15;
    still_.push_back(2 * j);
    still_.push_back(2 * j + 1);
    const double middle = 0.5 * frequency * static_cast<double>(scores.distances - 1);
    Eigen::Matrix2d rotation;
    rotation << std::cos(middle), -std::sin(middle), std::sin(middle), std::cos(middle);
    key_map_.middleRows(2 * j, 2) = rotation * key_map_.middleRows(2 * j, 2).eval();
  }
  for (Index i = scores.turning(); i < scores.dim(); ++i) still_.push_back(i);
  balance();
  improve();
  prove();
}

RotaryWeights::Stacked RotaryWeights::stacked(const MatrixXd& map, const VectorXd& constant,
                                              const MatrixXd& on_still, bool of_keys) const {
  const Index still = static_cast<Index>(still_.size());
  const Index rows = still + scores_.turning();
  Stacked result{MatrixXd(rows, map.cols()), VectorXd::Zero(rows)};
  const MatrixXd still_map = of_keys ? key_map_(still_, Eigen::all) : map(still_, Eigen::all);
  result.map.topRows(still) = on_still * still_map;
  double size = still_map.norm();
  // The part on coordinates that do not rotate shifts the scores of all keys alike.
  if (!of_keys) {
    result.constant.head(still) = on_still * constant(still_);
    size += constant(still_).norm();
  }
  for (Index j = 0; j < scores_.pairs; ++j) {
    const double factor = std::sqrt(turns_[j] * (of_keys ? 1.0 / weights_[j] : weights_[j]));
    result.map.middleRows(still + 2 * j, 2) = factor * map.middleRows(2 * j, 2);
    result.constant.segment(still + 2 * j, 2) = factor * constant.segment(2 * j, 2);
  }
  result.lost =
      rounding(still) * on_still.norm() * size + rounding(2) * (result.map.norm() + result.constant.norm());
  return result;
}

RotaryWeights::Stacked RotaryWeights::queries() const {
  return stacked(scores_.query, scores_.query_constant, factor_, false);
}

RotaryWeights::Stacked RotaryWeights::keys() const {
  return stacked(scores_.key, key_constant_, inverse_, true);
}

/// Weights that balance the sums of squares of both sides: F with F A Fᵀ = F⁻ᵀ B F⁻¹ for the Gram matrices.
void RotaryWeights::balance() {
  const auto gram = [](const MatrixXd& map, const VectorXd& constant) -> MatrixXd {
    return map * map.transpose() + constant * constant.transpose();
  };
  const MatrixXd queries = gram(scores_.query, scores_.query_constant);
  const MatrixXd keys = gram(scores_.key, key_constant_);
  const double floor_of_queries = 1e-12 * queries.trace() + 1e-300;
  const double floor_of_keys = 1e-12 * keys.trace() + 1e-300;
  for (Index j = 0; j < scores_.pairs; ++j) {
    const double of_query = queries.diagonal().segment(2 * j, 2).sum() + floor_of_queries;
    weights_[j] = moderate(std::sqrt((keys.diagonal().segment(2 * j, 2).sum() + floor_of_keys) / of_query));
  }
  const Index still = static_cast<Index>(still_.size());
  factor_ = inverse_ = MatrixXd::Identity(still, still);
  if (still == 0) return;
  const MatrixXd still_map = key_map_(still_, Eigen::all);
  const MatrixXd a = lifted(queries(still_, still_));
  const MatrixXd b = lifted(still_map * still_map.transpose());
  const auto root = [](double value) { return std::sqrt(std::max(value, 0.0)); };
  const MatrixXd a_root = spectral(a, root);
  const MatrixXd a_back = spectral(a, [](double value) { return 1.0 / std::sqrt(std::max(value, 1e-300)); });
  const MatrixXd middle = spectral(a_root * b * a_root, root);
  factor_ = spectral(a_back * middle * a_back, root);
  inverse_ = inverse_of(factor_).transpose();
}

void RotaryWeights::improve() {
  const Index still = static_cast<Index>(still_.size());
  Smoothed of_queries, of_keys;
  for (const auto& [doublings, iterations] : schedule) {
    // The ratio of both sides' contributions varies with this power of a weight.
    const double power = 2.0 * (1.0 + std::ldexp(1.0, doublings));
    for (int i = 0; i < iterations; ++i) {
      const Shares query = of_queries.shares(queries(), still, doublings);
      const Shares key = of_keys.shares(keys(), still, doublings);
      for (Index j = 0; j < scores_.pairs; ++j) {
        // Rounding may leave a small negative share.
        const double ratio =
            (std::max(key.pairs[j], 0.0) + least_share) / (std::max(query.pairs[j], 0.0) + least_share);
        weights_[j] = moderate(weights_[j] * std::pow(ratio, 1.0 / power));
      }
      if (still == 0) continue;
      const auto logarithm = [](double share) { return std::log(std::max(share, 0.0) + least_share); };
      const MatrixXd step = (spectral(key.still, logarithm) - spectral(query.still, logarithm)) / power;
      const SymmetricEigen eigen = symmetric_eigen(step);
      const auto stretch = [&](double sign) -> MatrixXd {
        const VectorXd values = (0.5 * sign * eigen.values).array().exp();
        return eigen.vectors * values.asDiagonal() * eigen.vectors.transpose();
      };
      factor_ = (stretch(1.0) * factor_).eval();
      inverse_ = (stretch(-1.0) * inverse_).eval();
    }
  }
  if (still > 0) inverse_ = inverse_of(factor_).transpose();
}

void RotaryWeights::prove() {
  const Stacked query = queries();
  const Stacked key = keys();
  const auto longest = [](const Stacked& side) {
    const RowMajor map(side.map);
    const std::span<const double> constant = as_span(side.constant);
    if (!side.constant.isZero(0.0)) return proof::largest_length(map, constant);
    // Without a constant, the largest eigenvalue is the multiplier, and no vector is needed.
    const VectorXd squares = symmetric_eigenvalues(product(side.map.transpose(), side.map));
    return proof::proved_largest(map, constant, {}, std::max(squares[squares.size() - 1], 0.0));
  };
  const proof::ExtremeLength longest_query = longest(query);
  const proof::ExtremeLength longest_key = longest(key);
  query_multiplier_ = longest_query.multiplier;
  key_multiplier_ = longest_key.multiplier;
  key_length_ = longest_key.upper + key.lost;
  // The deviation of F times its computed inverse from the identity.
  const Index still = static_cast<Index>(still_.size());
  const double apart = (factor_.transpose() * inverse_ - MatrixXd::Identity(still, still)).norm() +
                       rounding(still) * factor_.norm() * inverse_.norm();
  const bool holds_at_every_distance =
      std::none_of(slow_.begin(), slow_.end(), [](bool slow) { return slow; });
  slack_ = scores_.slack(holds_at_every_distance ? 0 : scores_.distances) +
           2.0 * apart * (still == 0 ? 0.0 : scores_.query_size() * key_map_.norm());
  spread_ = (2.0 * (longest_query.upper + query.lost) * key_length_ + slack_) * (1.0 + rounding(4));
}

WeightProof RotaryWeights::proof(std::size_t distances) const {
  WeightProof proof{.distances = distances,
                    .weights = {weights_.begin(), weights_.end()},
                    .turns = {turns_.begin(), turns_.end()},
                    .query_multiplier = query_multiplier_,
                    .key_multiplier = key_multiplier_,
                    .spread = spread_};
  for (const Index i : still_) {
    proof.still.push_back(static_cast<std::size_t>(scores_.order[static_cast<std::size_t>(i)]));
  }
  for (Index i = 0; i < factor_.rows(); ++i) {
    for (Index j = 0; j < factor_.cols(); ++j) proof.factor.push_back(factor_(i, j));
  }
  return proof;
}

RotaryWeights::Query RotaryWeights::most_uniform() const {
  const Stacked query = queries();
  const proof::ExtremeLength least = proof::least_length(RowMajor(query.map), as_span(query.constant));
  return {.point = Eigen::Map<const VectorXd>(least.point.data(), static_cast<Index>(least.point.size())),
          .spread = (2.0 * (least.upper + query.lost) * key_length_ + slack_) * (1.0 + rounding(4))};
}

double RotaryWeights::sensitivity(const MatrixXd& map) const {
  const Stacked query = stacked(map, VectorXd::Zero(map.rows()), factor_, false);
  return 2.0 * (query.map.norm() * (1.0 + rounding(query.map.size())) + query.lost) * key_length_ *
         (1.0 + rounding(4));
}

}  // namespace normscope::heads
