#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/nets/rnn/network.hpp>

/// Training by backpropagation through time, small enough to run in a browser.
///
/// Batches of words of similar length in a new order every epoch, Adam (β 0.9 and 0.999, ε 1e-8), gradients
/// clipped to length `clip`, parameters initialized uniformly in ±1/sqrt(width). Single-threaded; a seed
/// gives the same bits on every machine.
///
/// Source    [Weiss, Goldberg, Yahav 2018, section 4]; Adam [Kingma, Ba 2015] for the paper's SGD, whose
///           rate and batches are not stated
namespace normscope::nets::rnn {

struct TrainSpec {
  CellKind cell = CellKind::lstm;
  Language language = Language::anbn;
  Head head = Head::next_symbol;
  std::size_t width = 10;
  std::size_t longest = 100;  ///< largest exponent
  std::size_t words = 4000;   ///< number of words for membership, half of them members
  std::size_t batch = 8;
  double rate = 0.02;
  bool decay = true;  ///< linear decay of the rate to 0 in the second half of the epochs
  double clip = 1.0;
  std::size_t epochs = 600;  ///< at most; membership stops after an epoch without mistakes
  std::uint64_t seed = 1;

  bool operator==(const TrainSpec&) const = default;
};

/// The settings of the measurements in docs/papers/weiss.md: the defaults; for three letters exponents up to
/// 50 and 1000 epochs; for membership batches of 16 at rate 0.005 for at most 30 epochs, 60 for three
/// letters.
[[nodiscard]] TrainSpec usual(CellKind cell, Language language, Head head, std::uint64_t seed = 1);

/// Throws unless every number is inside its domain.
///
/// Errors    Argument
void validate(const TrainSpec& spec);

/// Training words. next_symbol: every member with exponents up to `longest`, as in the authors' code.
/// membership: half members with n uniform up to `longest`, half words with independent, not all equal
/// exponents. Every second of the latter is within 3 of a member, since the others are easy.
[[nodiscard]] std::vector<Labelled> training_words(const TrainSpec& spec);

/// The loss over words and its gradient: cell parameters, then output.
struct Gradient {
  double loss = 0.0;
  std::size_t right = 0;  ///< number of words classified correctly
  std::vector<double> values{};
};

/// Mean loss: −log probability of the right answer per word, or of the right symbol per symbol, including the
/// end.
///
/// Requires  no empty word
///
/// Errors    as `accepts`
///
/// Accuracy  1e-7 relative to central differences in extended precision
///           (test: Train.GradientsAreThoseOfDifferences)
///
/// Cost      about 6 flops per parameter and letter
[[nodiscard]] Gradient gradient(const Network& network, std::span<const Labelled> words);

/// A training in progress.
class Trainer {
 public:
  /// Errors    Argument: see `validate`
  explicit Trainer(const TrainSpec& spec);
  /// Continues from the result of `save` for the same spec, to the same bits as an uninterrupted training
  /// (test: Train.ResumesBitwise).
  ///
  /// Errors    Argument; Format for bytes of another training
  Trainer(const TrainSpec& spec, std::span<const std::byte> saved);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// One batch.
  ///
  /// Requires  !done()
  void step();
  /// Trains batches to the end of the epoch.
  ///
  /// Requires  !done()
  void epoch();
  [[nodiscard]] bool done() const;
  [[nodiscard]] const TrainSpec& spec() const;
  [[nodiscard]] const Network& network() const;
  /// For every epoch so far, measured while training: mean loss, and fraction of words classified correctly.
  [[nodiscard]] std::span<const double> loss() const;
  [[nodiscard]] std::span<const double> accuracy() const;
  /// The state needed to continue.
  ///
  /// Requires  the last epoch is complete
  [[nodiscard]] std::vector<std::byte> save() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

/// A complete training.
///
/// Errors    Argument; Cancelled
[[nodiscard]] Trainer train(const TrainSpec& spec, const Progress& progress = {});

}  // namespace normscope::nets::rnn
