#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// Whether a model's gains are those that it was trained with, or off by 1, as they are when a conversion
/// adds the 1 of "1 + w" once too often or not at all: by what the model makes of a text.
namespace normscope::analysis {

/// The model with `shift` added to every gain, on the text.
struct ShiftedGains {
  double shift = 0.0;
  double loss = 0.0;    ///< nats by which the next token surprises it, mean over the text
  double growth = 0.0;  ///< of the stream's root mean square, from its first norm to its final norm
};

struct GainConsistency {
  /// The shift with which the model is the trained one, 0, -1 or 1; empty: undecided.
  std::optional<int> shift{};
  std::string undecided{};            ///< why, where it is
  double work = 0.0;                  ///< multiplications of the four passes; 0 without a text
  std::size_t tokens = 0;             ///< tokens that are predicted
  double uniform = 0.0;               ///< loss of a model for which all tokens are equally likely
  std::vector<ShiftedGains> gains{};  ///< shifts 0, -1 and 1; empty where nothing was run
  double shuffled = 0.0;  ///< loss of the one with the least loss on the same tokens in another order
  std::vector<std::size_t> norms{};  ///< those that are shifted, as indices in `model.norms`
};

/// Nats of the whole text that count as overwhelming. A model that knows nothing of the text gives it such an
/// advantage over what it should not prefer in about one of e^20 cases.
inline constexpr double telling_nats = 20.0;

/// Multiplications; nothing is run if the four passes take more.
inline constexpr double consistency_budget = 5e10;

/// An English sentence of plain words, for models with a tokenizer.
[[nodiscard]] std::string_view consistency_text();

/// Runs the model with its gains as described, with 1 less and with 1 more. Shifted are the gains to which
/// the class adds 1, or all if it does not. A shift is decided only if two measures agree by `telling_nats`:
/// the text is likelier than under equally likely tokens and under both other shifts, and likelier than its
/// tokens in another order. Growth is measured and decides nothing: a stream grows with its gains whether
/// they are right or not.
///
/// Errors    as `forward::Decoder`, `forward::Decoder::run`
///
/// Properties  1. weights that know nothing of the text are undecided (test:
///             GainConsistency.RandomWeightsAreUndecided)
///
/// Cost      four passes over at most `Decoder::positions()` tokens, or nothing beyond the budget
[[nodiscard]] GainConsistency gain_consistency(const files::Checkpoint& checkpoint,
                                               const models::Model& model,
                                               std::span<const std::size_t> tokens, unsigned threads = 0,
                                               const Progress& progress = {},
                                               double budget = consistency_budget);

/// Likewise, with `consistency_text` and the tokenizer beside the checkpoint. Undecided, with the reason,
/// where there is none, and where the model is not one that `forward` runs.
///
/// Errors    Cancelled
[[nodiscard]] GainConsistency gain_consistency(const files::Checkpoint& checkpoint,
                                               const models::Model& model, unsigned threads = 0,
                                               const Progress& progress = {},
                                               double budget = consistency_budget);

}  // namespace normscope::analysis
