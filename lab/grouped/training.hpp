#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/run.hpp"
#include "network.hpp"

namespace normscope::lab::grouped {

/// Training data. A batch depends on seed and step only.
struct Data {
  std::function<Batch(std::uint64_t seed, std::uint64_t step)> batch;
  std::vector<Batch> held_out{};
};

/// The training part of a configuration: AdamW with a warm-up and a cosine schedule.
struct Schedule {
  std::uint64_t steps = 0;
  std::uint64_t warmup = 0;
  double rate = 0.0;
  std::uint64_t measure_every = 0;  ///< steps between two points of the curves
};
[[nodiscard]] Json to_json(const Schedule& schedule);

/// Trains the run's network as configured ("steps", "warmup", "rate", "measure_every"). Measures
/// "train_loss", the mean since the last point, and "loss" and "accuracy" on held-out data.
///
/// With "observe" it measures at the same steps and at step 0, on the first held-out batch, statistics of
/// each norm's inputs: "NORM.cosine" to all-ones, "NORM.cosine_size" (its absolute value),
/// "NORM.mean_square", and "NORM.sigma_off", deviation over mean of the rows' standard deviation, which is
/// the denominator of a LayerNorm in one group; of all norms "worst_cosine", the largest absolute mean
/// cosine, and "cosine_size", the mean; and "largest_score". After step "removed_at" the denominators of the
/// stream's norms are constants, their means over a batch; "loss_before" and "loss_after" are the held-out
/// losses before and after that.
///
/// Errors    Cancelled, from Run::reached
///
/// Accuracy  an interrupted run measures the same bits as an uninterrupted one (test:
///           Grouped.InterruptedTrainingResumesBitwise)
void train(Run& run, const Network& network, const Data& data);

/// Pieces of a text, with characters as tokens 0, 1, … by code. The last tenth is held out and evaluated at
/// `pieces` evenly spaced positions.
struct Text {
  Data data{};
  std::size_t alphabet = 0;
};
///
/// Errors    Format naming the text, if it has fewer than 10 (length + 2) characters
[[nodiscard]] Text text_data(const std::string& name, std::string_view text, std::size_t length,
                             std::size_t rows, std::size_t pieces);

inline constexpr std::size_t image_side = 32;  ///< pixels of an image of CIFAR-10

/// The images of CIFAR-10 in that folder, `train` of them and `test` of the test set. A batch is `rows`
/// images in a new order every epoch, each mirrored at random; with `halved`, images are averaged over 2 × 2
/// to 16 pixels.
///
/// Errors    Io, Format naming the file; Argument if there are fewer, or if a batch has more than `train`
[[nodiscard]] Data image_data(const std::string& folder, std::size_t train, std::size_t test,
                              std::size_t rows, bool halved);

}  // namespace normscope::lab::grouped
