#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/net.hpp>

#include "line.hpp"

/// Projection Merge: samples, their projection to a line, the head that reads the line, and both modes of
/// folding it.
namespace normscope::nets {

/// The distinct rows, with the class index of each.
struct Samples {
  std::vector<std::size_t> rows;       ///< the first row of each sample, ascending
  std::vector<std::uint32_t> classes;  ///< of each sample, an index into `names`
  std::vector<std::int64_t> names;     ///< labels, ascending
  std::vector<std::int64_t> wanted;  ///< the label of each row of x, after equal rows were given the same one
  std::size_t relabelled = 0;
};

/// Errors    Shape, Argument: see `construct`
[[nodiscard]] Samples distinct_samples(MatrixView<const double> x, std::span<const std::int64_t> labels,
                                       bool first_label_wins);

/// The rows of `samples` as a matrix of their own.
[[nodiscard]] std::vector<double> gather(MatrixView<const double> x, const std::vector<std::size_t>& rows);

/// A direction w, and the projected samples.
template <typename T>
struct Projection {
  std::vector<double> direction;
  std::vector<T> values;    ///< wᵀx of each row
  double separation = 0.0;  ///< smallest distance of neighbours of different classes, relative to the range
};

/// The one of 16 Gaussian directions that separates the classes best; with separation 0 and no values if each
/// of them maps two classes to the same value.
///
/// Source    [Ni et al. 2024, Algorithm 1]: any direction that keeps different samples apart
template <typename T>
[[nodiscard]] Projection<T> best_projection(MatrixView<const double> x,
                                            const std::vector<std::uint32_t>& classes, std::uint64_t seed,
                                            unsigned threads);

/// A linear head whose largest output identifies the class's interval on the line that contains a value:
///   s_k = k v − t_1 − … − t_k,   v = readout · a
/// with thresholds t between neighbouring classes: halfway between their ranges, or between their means if
/// the ranges overlap. `order` receives the labels in the order of the outputs.
///
/// Shapes    values, classes (clusters); readout (3)
template <typename T>
[[nodiscard]] Layer threshold_head(const std::vector<T>& values, const std::vector<std::uint32_t>& classes,
                                   const std::vector<T>& readout, const std::vector<std::int64_t>& names,
                                   std::vector<std::int64_t>& order);

/// Algorithm 1 as published, except that cluster ids replace tests for equality, in T; fills `folds`. Three
/// neurons represent x ∈ S¹ as √3 (x₁ u₁ + x₂ u₂), u₁ = (1, −1, 0)/√2, u₂ = (1, 1, −2)/√6.
///
/// Source    [Ni et al. 2024, Algorithm 1]
template <typename T>
[[nodiscard]] Net construct_paper(MatrixView<const double> x, const Samples& samples,
                                  const ConstructOptions& options, const Progress& progress,
                                  std::vector<Fold>& folds);

/// One attempt of the stable mode.
struct StablePlan {
  std::uint64_t seed = 1;  ///< of the projection
  double kappa = 0.0;
  bool early_stop = true;
  std::size_t save_every = 0;
  unsigned threads = 0;
};

/// The result of an attempt.
struct StableAttempt {
  bool separable = false;    ///< the projection separates the classes
  std::optional<Net> net{};  ///< empty if the precision did not suffice
  std::vector<Fold> folds{};
};

/// Saves an unfinished line.
template <typename T>
using SaveLine = std::function<void(const Line<T>&)>;

/// Folds the distinct rows `x` in T, starting from `resumed` if it contains a line.
///
/// Errors    Cancelled, after `save`
template <typename T>
[[nodiscard]] StableAttempt construct_stable(MatrixView<const double> x, const Samples& samples,
                                             const StablePlan& plan, std::optional<Line<T>> resumed,
                                             const SaveLine<T>& save, const Progress& progress);

}  // namespace normscope::nets
