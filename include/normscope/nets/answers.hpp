#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/train.hpp>

/// Predicted class and probability per point, for plotting.
namespace normscope::nets {

/// For each row, its class and the softmax of its logits at that class.
struct Answers {
  std::vector<std::int64_t> classes;
  std::vector<double> probabilities;
};

/// The classes are `labels(net, x)`; the first one among equal logits.
///
/// Shapes    x (rows, net.in())
///
/// Errors    Shape, Argument: see `evaluate`
///
/// Accuracy  test: Answers.AreTheLabelsAndTheirSoftmax
[[nodiscard]] Answers answers(const Net& net, MatrixView<const double> x, unsigned threads = 0);

/// The softmax of each row's logits.
///
/// Shapes    x (rows, net.in()) → rows × net.out()
///
/// Errors    as `answers`
[[nodiscard]] std::vector<double> class_probabilities(const Net& net, MatrixView<const double> x,
                                                      unsigned threads = 0);

/// A rectangle of the plane in columns × rows cells.
struct Grid {
  double left = 0.0;
  double right = 0.0;
  double bottom = 0.0;
  double top = 0.0;
  std::size_t columns = 0;
  std::size_t rows = 0;

  [[nodiscard]] double dx() const { return (right - left) / static_cast<double>(columns); }
  [[nodiscard]] double dy() const { return (top - bottom) / static_cast<double>(rows); }
  /// The centres of the cells, from left to right, the lowest row first.
  [[nodiscard]] std::vector<double> centers() const;
};

/// The bounding rectangle of the samples, enlarged by 8 % of its sides on each side, in cells × cells; if all
/// samples share a coordinate, an interval around it.
///
/// Requires  data.width == 2 and at least one row
[[nodiscard]] Grid grid_around(const Dataset& data, std::size_t cells);

/// Points of the unit sphere from their positions on a map, (angle around the z axis in [−π, π], height z in
/// [−1, 1]), which preserves areas.
///
/// Source    Lambert's cylindrical projection
///
/// Shapes    (rows, 2) → (rows, 3);  |height| <= 1
///
/// Accuracy  inverse to `on_map` (test: Answers.MapAndSphereAreInverse)
[[nodiscard]] std::vector<double> on_sphere(MatrixView<const double> places);
/// The position on the map of a point's direction; (0, 0) for the origin.
///
/// Shapes    (rows, 3) → (rows, 2)
[[nodiscard]] std::vector<double> on_map(MatrixView<const double> points);

/// A training that can return the net at earlier steps.
///
/// It keeps the multiples of a distance, which is doubled whenever more than `most` of them would be kept.
/// The kept steps therefore depend only on the number of steps done. The current net is always available.
class Recording {
 public:
  /// Requires  most >= 2
  ///
  /// Errors    Argument, Shape: see `Trainer`
  Recording(const TrainSpec& spec, const Dataset& data, std::size_t most = 256);
  /// Shares `data` instead of copying it.
  Recording(const TrainSpec& spec, const std::shared_ptr<const Dataset>& data, std::size_t most = 256);

  /// Trains `steps` more steps, or as many as remain.
  void advance(std::size_t steps);

  [[nodiscard]] const Trainer& trainer() const { return trainer_; }
  [[nodiscard]] std::size_t steps() const { return trainer_.steps_done(); }
  /// Distance between kept steps.
  [[nodiscard]] std::size_t distance() const { return distance_; }
  /// The last kept or current step that is not after `step`.
  [[nodiscard]] std::size_t kept(std::size_t step) const;
  /// The net at `kept(step)`.
  [[nodiscard]] Net net(std::size_t step) const;

  /// Loss and accuracy on the training data of the net at `kept(step)`.
  [[nodiscard]] Score score(std::size_t step) const;
  /// The score at a step on other `data` of the same width.
  [[nodiscard]] Score score(std::size_t step, const Dataset& data) const;

 private:
  [[nodiscard]] const Trainer& at(std::size_t step) const;
  void keep();

  Trainer trainer_;
  mutable Trainer past_;  ///< converts kept parameters to a net
  std::size_t most_;
  std::size_t distance_ = 1;
  std::vector<std::vector<double>> parameters_;  ///< at steps 0, distance, 2 distance, …
};

}  // namespace normscope::nets
