#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/model.hpp>

/// A context on which two models give different logits.
namespace normscope::rewrite {

/// The logit of a token in both models, or a feature of their hidden states.
struct LogitPair {
  std::size_t token = 0;
  double before = 0.0, after = 0.0;
};

/// Two logits, by the forward pass of both files in double precision, further apart than their errors and
/// what rounding of the weights explains. Such errors are estimates: how far the logits of that position move
/// where every product, norm and attention output of the pass moves up or down by the bound of its own
/// rounding; the largest of three such passes, times 8. It assumes that roundings act to first order, and do
/// not conspire beyond that factor. A witness is about the weights as they are stored.
struct Witness {
  std::vector<std::size_t> tokens{};
  std::size_t position = 0;  ///< from 0, in `tokens`
  bool of_features = false;  ///< of the last hidden state of an encoder without a language head, for logits
  LogitPair logit{};
  double old_error = 0.0, new_error = 0.0;
  /// How far logits of OLD move, likewise but times 3, where each row of the weights that differ changes by
  /// what rounding, or quantization, explains; 0 if all weights are equal.
  double rounding = 0.0;
  /// Those of that position that differ most, by token.
  std::vector<LogitPair> logits{};
};

/// What a search has found, and how much it did. Exactly one of `witness` and `why_none` is there.
struct WitnessSearch {
  std::optional<Witness> witness{};
  std::string why_none{};    ///< in words
  std::size_t contexts = 0;  ///< that both models have run
  double largest_gap = 0.0;  ///< between logits, of all contexts
};

/// Runs both models on contexts of random tokens, on tokens whose embeddings differ most, and on the context
/// with the largest gap with tokens exchanged one at a time. The seed is fixed, and the number of contexts
/// depends on both models' sizes alone. Ends with the first kind of contexts that has a witness.
///
/// `changes`  of weights of OLD, that count as rounding
///
/// Errors    as `forward::Decoder::run`, but for models that it does not run, which `why_none` tells
[[nodiscard]] WitnessSearch seek_witness(const files::Checkpoint& old_file, const models::Model& old_model,
                                         const files::Checkpoint& new_file, const models::Model& new_model,
                                         const forward::WeightChanges& changes,
                                         const Progress& progress = {});

}  // namespace normscope::rewrite
