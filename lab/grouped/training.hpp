#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/run.hpp"
#include "network.hpp"

namespace normscope::lab::grouped {

/// What a network is trained on. Both draw from what they are given alone.
struct Data {
  std::function<Batch(std::uint64_t seed, std::uint64_t step)> batch;
  std::vector<Batch> held_out{};
};

/// The part of a configuration that says how to train: AdamW with a warm-up and half a cosine.
struct Schedule {
  std::uint64_t steps = 0;
  std::uint64_t warmup = 0;
  double rate = 0.0;
  std::uint64_t measure_every = 0;  ///< steps between two points of the curves
};
[[nodiscard]] Json to_json(const Schedule& schedule);

/// The run's network trained as its configuration says ("steps", "warmup", "rate", "measure_every"). Measured
/// are "train_loss", the mean since the last point, and "loss" and "accuracy" on what is held out.
/// Errors    Cancelled, from Run::reached
/// Accuracy  a run that goes on from its progress measures the bits of one that was never stopped
///           (test: Grouped.AStoppedTrainingGoesOnBitwise)
void train(Run& run, const Network& network, const Data& data);

/// Pieces of a text, its characters as tokens 0, 1, … in the order of their codes; the last tenth is held
/// out, at `pieces` places evenly spread.
struct Text {
  Data data{};
  std::size_t alphabet = 0;
};
/// Requires  a text that is longer than ten times `length`
[[nodiscard]] Text text_data(std::string_view text, std::size_t length, std::size_t rows, std::size_t pieces);

/// The images of CIFAR-10 in that folder, `train` of them and `test` of the test set. A batch is `rows`
/// images in a new order every pass, each mirrored or not at random; `halved` ones are 16 pixels wide, means
/// of 2 × 2. Errors    Io, Format naming the file; Argument if there are fewer
[[nodiscard]] Data image_data(const std::string& folder, std::size_t train, std::size_t test,
                              std::size_t rows, bool halved);

}  // namespace normscope::lab::grouped
