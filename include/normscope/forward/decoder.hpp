#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// The forward pass of decoders whose blocks are causal self-attention and an MLP, as `model` describes them.
namespace normscope::forward {

/// A token that may follow, with its logit and its probability among all tokens.
struct Continuation {
  std::size_t token = 0;
  double logit = 0.0;
  double probability = 0.0;
};

/// The distribution of the token after one position.
struct Prediction {
  std::vector<Continuation> likeliest{};  ///< in order
  std::optional<Continuation> next{};     ///< the token that does follow; empty at the last position
  std::size_t rank = 0;                   ///< of that token, from 0: the number of tokens with larger logits
};

/// Called with the index of a norm in `model.norms` and the rows that enter it, one for each token.
using Observe = std::function<void(std::size_t norm, MatrixView<const double> rows)>;

/// Largest number of tokens of a pass, for models that state no smaller one. Scores take its square.
inline constexpr std::size_t most_tokens = 4096;

/// Computes in double precision, and reads weights as it needs them.
class Decoder {
 public:
  /// Keeps references to both arguments.
  ///
  /// Errors    Unsupported, "not modelled: …", unless everything that the model computes is known: its
  ///           architecture, all its tensors and all fields of its configuration
  Decoder(const files::Checkpoint& checkpoint, const models::Model& model, unsigned threads = 0);
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  /// Number of tokens in the vocabulary, of which the embedding has a row each.
  [[nodiscard]] std::size_t vocabulary() const;
  /// The largest number of tokens of a context.
  [[nodiscard]] std::size_t positions() const;
  /// The norms on the residual stream, as indices in `model.norms`, in the order of the pass. The last is the
  /// final norm.
  [[nodiscard]] const std::vector<std::size_t>& norms() const;

  /// The output of the final norm for each token, row-major. `observe` is called with each of `norms()`.
  ///
  /// Errors    Argument for no tokens, more than `positions()`, or a token outside the vocabulary; as
  ///           `models::read_weight`; Cancelled
  ///
  /// Accuracy  logits agree with those of transformers to 2e-5 for fixtures of every supported architecture
  ///           (test: Decoder.HasTheLogitsOfTransformers)
  ///
  /// Cost      2 · tokens · parameters operations, and attention; memory: the largest matrix of weights, and
  ///           rows of the stream
  [[nodiscard]] std::vector<double> run(std::span<const std::size_t> tokens, const Observe& observe = {},
                                        const Progress& progress = {}) const;

  /// The logits for rows of the final norm's output, before softmax.
  ///
  /// Shapes    hidden (any rows, width), logits (the same rows, vocabulary)
  ///
  /// Errors    as `models::read_weight`; Cancelled
  void logits(MatrixView<const double> hidden, MatrixView<double> logits,
              const Progress& progress = {}) const;

  /// What follows each of `tokens`, given the result of `run`.
  [[nodiscard]] std::vector<Prediction> predict(std::span<const std::size_t> tokens,
                                                std::span<const double> hidden, std::size_t likeliest,
                                                const Progress& progress = {}) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace normscope::forward
