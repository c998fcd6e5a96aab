#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "network.hpp"

namespace normscope::lab::majority {

struct Recipe {
  Task task{};
  InputNorm norm{};
  std::size_t batch = 6000;
  double rate = 1e-3;              ///< Adam's rate at the first step,
  double schedule_epochs = 1e4;    ///< decreasing linearly to zero after this many epochs
  std::size_t read_sequences = 0;  ///< number of test sequences whose attention is analysed
};

/// Statistics of a network's attention.
struct AttentionMeasures {
  double angle = 0.0;  ///< degrees between effective query and ones, folded to 0 … 90, over training tokens
  double query_length = 0.0;  ///< of effective queries, over training tokens
  double key_length = 0.0;    ///< over classes
  double key_spread = 0.0;    ///< standard deviation of their lengths divided by the mean
  double divergence =
      0.0;  ///< Kullback-Leibler, of attention over positions from the uniform, nats, over tokens
};

/// Trains one network as the released code does. `seed` determines data, initial values and orders.
///
/// Source    [Brody, Alon, Yahav 2023, section 4.1], and the authors' code; [Kingma, Ba 2015] Adam
///
/// Cost      about 4 ms per step of 6000 sequences on one core with AVX-512
template <class Size>
class Training {
 public:
  Training(const Recipe& recipe, std::uint64_t seed);

  [[nodiscard]] std::size_t step() const { return step_; }
  [[nodiscard]] std::size_t steps_an_epoch() const;
  void advance();

  /// Mean over the training batches of the last epoch, or of fewer at the start.
  ///
  /// Requires  at least one step
  [[nodiscard]] Outcome trained() const;
  [[nodiscard]] Outcome tested();
  [[nodiscard]] AttentionMeasures attention() const;
  /// Keys, effective queries and scores of the classes.
  [[nodiscard]] AttentionTables<Size> tables() const {
    return attention_tables<Size>(recipe_.norm, parameters_);
  }
  [[nodiscard]] std::span<const double> parameters() const { return parameters_; }

  /// The state that `restore` needs besides the step.
  [[nodiscard]] std::vector<std::byte> progress() const;
  /// Errors    Format for bytes that are not a saved state
  void restore(std::size_t step, std::span<const std::byte> progress);

 private:
  void order_epoch();

  Recipe recipe_;
  std::uint64_t seed_;
  Data data_;
  Network<float, Size> network_;
  std::vector<double> parameters_;
  std::vector<double> first_moments_ = std::vector<double>(Layout<Size>::count, 0.0);
  std::vector<double> second_moments_ = std::vector<double>(Layout<Size>::count, 0.0);
  std::vector<double> losses_{};  ///< of the last epoch's steps, with the accuracy of each
  std::vector<double> rights_{};
  std::vector<double> class_parts_{};   ///< for the training tokens
  std::vector<std::uint32_t> order_{};  ///< of the epoch
  std::vector<std::uint32_t> test_rows_{};
  std::vector<double> gradient_ = std::vector<double>(Layout<Size>::count, 0.0);
  std::size_t step_ = 0;
};

}  // namespace normscope::lab::majority
