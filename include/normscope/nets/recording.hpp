#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <normscope/nets/train.hpp>

namespace normscope::nets {

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
  /// The same without a copy of `data`.
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
  /// The same on `data` of the same width.
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
