#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <normscope/automata/network.hpp>
#include <normscope/core/progress.hpp>

/// Training by backpropagation through time, small enough to run in a browser.
///
/// Batches of words of like length in a new order every epoch, Adam (β 0.9 and 0.999, ε 1e-8), gradients
/// longer than `clip` cut to it; parameters begin uniform in ±1/sqrt(width). One thread, and from the same
/// seed the same bits everywhere.
///
/// Source    [Weiss, Goldberg, Yahav 2018, section 4]; Adam [Kingma, Ba 2015] for the paper's SGD, whose
///           rate and batches are not stated
namespace normscope::automata {

struct TrainSpec {
  CellKind cell = CellKind::lstm;
  Language language = Language::anbn;
  Head head = Head::next_symbol;
  std::size_t width = 10;
  std::size_t longest = 100;  ///< largest exponent
  std::size_t words = 4000;   ///< membership: half of them members
  std::size_t batch = 8;
  double rate = 0.02;
  bool decay = true;  ///< the rate falls on a line to 0 in the second half of the epochs
  double clip = 1.0;
  std::size_t epochs = 600;  ///< at most; membership stops where an epoch made no mistake
  std::uint64_t seed = 1;

  bool operator==(const TrainSpec&) const = default;
};

/// What the measurements of docs/papers/weiss.md were made with: as above, exponents to 50 and 1000 epochs
/// for three letters; membership in batches of 16 at rate 0.005 for at most 30 epochs, 60 for three letters.
[[nodiscard]] TrainSpec usual(CellKind cell, Language language, Head head, std::uint64_t seed = 1);

/// Throws unless every number is inside its domain.
/// Errors    Argument
void validate(const TrainSpec& spec);

/// Words to learn from. next_symbol: every member with exponents up to `longest`, as in the authors' code.
/// membership: half members with n uniform up to `longest`, half words with independent exponents of which
/// not all are equal, every second of those within 3 of a member, since others are easy.
[[nodiscard]] std::vector<Labelled> training_words(const TrainSpec& spec);

/// The loss over words and its gradient: cell parameters, then output.
struct Gradient {
  double loss = 0.0;
  std::size_t right = 0;  ///< words judged as they should be
  std::vector<double> values{};
};

/// Mean loss: −log of the right answer's probability a word, or of the right symbol's a symbol, the end
/// included.
/// Requires  words that are not empty
/// Errors    as `accepts`
/// Accuracy  1e-7 relative to central differences in extended precision
///           (test: Train.GradientsAreThoseOfDifferences)
/// Cost      about 6 flops a parameter and letter
[[nodiscard]] Gradient gradient(const Network& network, std::span<const Labelled> words);

/// Training under way.
class Trainer {
 public:
  /// Errors    Argument: see `validate`
  explicit Trainer(const TrainSpec& spec);
  /// Goes on from what `save` gave for the same spec, to the bits that an uninterrupted training has
  /// (test: Train.GoesOnWhereItWasSaved).
  /// Errors    Argument; Format for bytes of another training
  Trainer(const TrainSpec& spec, std::span<const std::byte> saved);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// One batch.
  /// Requires  !done()
  void step();
  /// Batches to the end of the epoch.
  /// Requires  !done()
  void epoch();
  [[nodiscard]] bool done() const;
  [[nodiscard]] const TrainSpec& spec() const;
  [[nodiscard]] const Network& network() const;
  /// Of every epoch so far, seen while training: mean loss, and share of the words judged right.
  [[nodiscard]] std::span<const double> loss() const;
  [[nodiscard]] std::span<const double> accuracy() const;
  /// All that is needed to go on from here.
  /// Requires  whole epochs are done
  [[nodiscard]] std::vector<std::byte> save() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

/// A training from its begin to its end.
/// Errors    Argument; Cancelled
[[nodiscard]] Trainer train(const TrainSpec& spec, const Progress& progress = {});

}  // namespace normscope::automata
