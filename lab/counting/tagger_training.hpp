#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tagger.hpp"

/// Training of a tagger on words of one length: batches of `lanes` words in a new order every epoch, Adam (β
/// 0.9 and 0.999, ε 1e-8) at a constant rate, gradients clipped to length `clip`, parameters initialized
/// uniformly in ±1/sqrt(width).
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

/// In float32; a seed determines the bits.
class TaggerTraining {
 public:
  /// Errors    Argument for a number outside its domain
  explicit TaggerTraining(const TaggerSpec& spec);
  /// Continues from the result of `save`, to the bits of an uninterrupted training (test:
  /// TaggerTraining.ResumesBitwise).
  ///
  /// Errors    Argument; Format for bytes of another training
  TaggerTraining(const TaggerSpec& spec, std::span<const std::byte> saved);
  TaggerTraining(TaggerTraining&&) noexcept;
  TaggerTraining& operator=(TaggerTraining&&) noexcept;
  ~TaggerTraining();

  /// One batch.
  ///
  /// Requires  steps() < total()
  void step();
  [[nodiscard]] std::size_t steps() const;
  [[nodiscard]] std::size_t total() const;
  [[nodiscard]] std::size_t steps_per_epoch() const;
  /// Mean loss over the batches of the current epoch; over the whole epoch at its end.
  [[nodiscard]] double loss() const;

  /// Accuracy of the labels of `words` words of `length`. These words do not depend on the seed of the
  /// training, and no training uses them.
  ///
  /// Errors    Argument if `words` is not a positive multiple of `lanes`
  [[nodiscard]] double accuracy(std::size_t length, std::size_t words) const;

  [[nodiscard]] std::span<const float> parameters() const;
  [[nodiscard]] std::vector<std::byte> save() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace normscope::lab::counting
