#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <normscope/lnnet/train.hpp>

namespace normscope::lnnet {

/// A training that remembers how its net stood at steps of the past.
///
/// Kept are the multiples of a distance that doubles whenever more than `most` of them would be kept, so what
/// is kept depends on how far the training has come and on nothing else. The net of now can always be had.
class Recording {
 public:
  /// Requires  most >= 2
  /// Errors    Argument, Shape: see `Trainer`
  Recording(const TrainSpec& spec, const Dataset& data, std::size_t most = 256);
  /// The same without a copy of `data`.
  Recording(const TrainSpec& spec, const std::shared_ptr<const Dataset>& data, std::size_t most = 256);

  /// Trains `steps` more steps, or as many as are left.
  void advance(std::size_t steps);

  [[nodiscard]] const Trainer& trainer() const { return trainer_; }
  [[nodiscard]] std::size_t steps() const { return trainer_.steps_done(); }
  /// Steps between two that are kept.
  [[nodiscard]] std::size_t distance() const { return distance_; }
  /// The last step that is kept, or now, not after `step`.
  [[nodiscard]] std::size_t kept(std::size_t step) const;
  /// The net as it stood at `kept(step)`.
  [[nodiscard]] Net net(std::size_t step) const;

  /// On the training data, of the net as it stood at `kept(step)`.
  [[nodiscard]] Score score(std::size_t step) const;

 private:
  [[nodiscard]] const Trainer& at(std::size_t step) const;
  void keep();

  Trainer trainer_;
  mutable Trainer past_;  ///< turns kept parameters into a net
  std::size_t most_;
  std::size_t distance_ = 1;
  std::vector<std::vector<double>> parameters_;  ///< of steps 0, distance, 2 distance, …
};

}  // namespace normscope::lnnet
