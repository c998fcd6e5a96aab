#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tagger.hpp"

/// A tagger learns from words of one length: batches of `lanes` words in a new order every epoch, Adam
/// (β 0.9 and 0.999, ε 1e-8) at one rate, gradients longer than `clip` cut to it; parameters begin uniform in
/// ±1/sqrt(width).
namespace normscope::lab::counting {

struct TaggerSpec {
  Tagging tagging = Tagging::near_balance;
  TaggerShape shape{};
  std::size_t length = 64;
  std::size_t words = 20000;  ///< a multiple of `lanes`
  std::size_t epochs = 12;
  double rate = 0.005;
  double clip = 1.0;
  std::uint64_t seed = 1;
};

/// In float32; from the same seed the same bits.
class TaggerTraining {
 public:
  /// Errors    Argument for a number outside its domain
  explicit TaggerTraining(const TaggerSpec& spec);
  /// Goes on from what `save` gave, to the bits that an uninterrupted training has
  /// (test: TaggerTraining.GoesOnWhereItWasSaved).
  /// Errors    Argument; Format for bytes of another training
  TaggerTraining(const TaggerSpec& spec, std::span<const std::byte> saved);
  TaggerTraining(TaggerTraining&&) noexcept;
  TaggerTraining& operator=(TaggerTraining&&) noexcept;
  ~TaggerTraining();

  /// One batch. Requires  steps() < total()
  void step();
  [[nodiscard]] std::size_t steps() const;
  [[nodiscard]] std::size_t total() const;
  [[nodiscard]] std::size_t steps_per_epoch() const;
  /// Mean loss over the batches since `steps` was last a multiple of the epoch's; over the whole epoch where
  /// it is one now.
  [[nodiscard]] double loss() const;

  /// Share of the labels of `words` words of `length` that it gets right: words that do not depend on the
  /// seed of the training, and that no training has seen.
  /// Requires  words is a multiple of `lanes`
  [[nodiscard]] double accuracy(std::size_t length, std::size_t words) const;

  [[nodiscard]] std::span<const float> parameters() const;
  [[nodiscard]] std::vector<std::byte> save() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace normscope::lab::counting
