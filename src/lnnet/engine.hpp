#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/sha256.hpp>
#include <normscope/lnnet/train.hpp>

#include "pass.hpp"

namespace normscope::lnnet {

/// What stays the same whatever numbers the training computes in.
class Trainer::Engine {
 public:
  Engine(const TrainSpec& spec, std::shared_ptr<const Dataset> data, unsigned threads);
  virtual ~Engine() = default;

  virtual void step() = 0;
  [[nodiscard]] virtual Score score(const Dataset& data) const = 0;
  [[nodiscard]] virtual std::vector<double> gradient() const = 0;
  /// The parameters, and the optimizer's two moments.
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
  std::size_t size = 0;  ///< parameters, without filling
  std::size_t done = 0;
  std::vector<double> loss;
  std::vector<double> accuracy;
  std::optional<Digest> fingerprint;  ///< of spec and data, once a state was saved or read

 protected:
  /// Row that comes `position`-th in step `done`; computes a new order when an epoch begins.
  void choose_batch();
  std::span<const std::uint32_t> batch_;  ///< rows of the step that comes

 private:
  std::vector<std::uint32_t> order_;
  std::size_t ordered_epoch_ = SIZE_MAX;
};

}  // namespace normscope::lnnet
