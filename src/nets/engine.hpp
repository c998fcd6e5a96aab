#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/snapshot.hpp>
#include <normscope/nets/train.hpp>

#include "pass.hpp"

namespace normscope::nets {

/// The part of a training that does not depend on the number type.
class Trainer::Engine {
 public:
  Engine(const TrainSpec& spec, std::shared_ptr<const Dataset> data, unsigned threads);
  virtual ~Engine() = default;

  virtual void step() = 0;
  [[nodiscard]] virtual Score score(const Dataset& data) const = 0;
  [[nodiscard]] virtual std::vector<double> gradient() const = 0;
  /// The parameters, and the two moments of the optimizer.
  [[nodiscard]] virtual std::vector<double> parameters() const = 0;
  [[nodiscard]] virtual std::vector<double> first() const = 0;
  [[nodiscard]] virtual std::vector<double> second() const = 0;
  virtual void assign(std::span<const double> parameters, std::span<const double> first,
                      std::span<const double> second) = 0;

  TrainSpec spec;
  std::shared_ptr<const Dataset> shared;
  const Dataset& data;
  unsigned threads;
  detail::Pass pass;
  std::size_t size = 0;  ///< parameters, without padding
  std::size_t done = 0;
  std::vector<double> loss;
  std::vector<double> accuracy;
  std::optional<Digest> fingerprint;  ///< of spec and data, computed when a state is first saved or read

 protected:
  /// The row at `position` of step `done`; computes a new order at the start of an epoch.
  void choose_batch();
  std::span<const std::uint32_t> batch_;  ///< rows of the next step

 private:
  std::vector<std::uint32_t> order_;
  std::size_t ordered_epoch_ = SIZE_MAX;
};

}  // namespace normscope::nets
