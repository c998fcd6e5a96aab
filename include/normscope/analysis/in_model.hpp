#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/analysis/observer.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/selectability/select.hpp>
#include <normscope/selectability/vocabulary.hpp>

/// What the rows that entered norms when a model ran imply for its heads and logits: which keys of real
/// contexts a head's queries can select, and the distribution of the next token.
namespace normscope::analysis {

/// The rows that entered a norm, context by context.
struct NormContexts {
  std::string norm;                              ///< its name in the model
  std::vector<MatrixView<const double>> rows{};  ///< (positions, width) of each context
};

/// Norms x → g ⊙ (x − m)/σ + b with and without their parts: projection, the subtraction of the mean m, and
/// scaling, the division by the root mean square σ of what is left. A LayerNorm does both, an RMSNorm scales.
enum class NormParts : std::size_t { neither, projection, scaling, both };
inline constexpr std::size_t norm_parts = 4;

/// Numbers of keys of all contexts together, for one choice of the norm's parts.
struct KeyCounts {
  std::size_t selectable = 0;
  std::size_t undecided = 0;
};

/// One head over the contexts of the norm that it reads.
struct ContextKeys {
  std::size_t head = 0;  ///< index in `model.heads`
  std::string norm{};
  std::size_t contexts = 0;
  std::size_t keys = 0;
  NormParts own = NormParts::both;             ///< what the model's norm does
  std::array<KeyCounts, norm_parts> counts{};  ///< by NormParts
  /// The answer for each key of the first context, with what the model's norm does.
  std::vector<selectability::Selectability> first_context{};
  /// For each key of the first context the first position of a query from which on no query selects it among
  /// the keys so far; the number of keys if there is none. Empty unless `ContextKeyOptions::positions`.
  std::vector<std::size_t> lost_from{};
  std::string refused{};  ///< why there are none; empty otherwise

  [[nodiscard]] const KeyCounts& of(NormParts parts) const { return counts[static_cast<std::size_t>(parts)]; }
};

struct ContextKeyOptions {
  std::size_t most_heads = 48;  ///< heads that are measured, spread evenly over all that can be
  /// Estimated multiplications after which no further head is started.
  double budget = std::numeric_limits<double>::infinity();
  /// Whether `ContextKeys::lost_from` is wanted. Heads whose window is shorter than the context have none:
  /// their later queries compare other keys.
  bool positions = false;
  unsigned threads = 0;
};

/// For each context, how many keys some query gives the strictly highest score
/// (`selectability::select_keys`): of the keys that the model computes, and of those that it would compute
/// with other parts of the norm. Keys are W norm(x) + b, passed through the head's own norm of keys if it has
/// one, and rotated by their position if the head has rotary embeddings. All keys of a context are used, as
/// for its last query; windows are ignored. Of heads that share their keys only the first is measured.
///
/// Source    [Brody, Alon, Yahav 2023, section 3.2], for real contexts
///
/// Errors    as `models::read_weight`; Cancelled
///
/// Accuracy  (test: test_selectable_keys_are_those_of_the_definition)
///
/// Cost      four `selectability::select_keys` of positions × head_dim for each context and head; with
///           `positions` up to log2(positions) more for each key of the first context that is not selectable
[[nodiscard]] std::vector<ContextKeys> selectable_context_keys(const files::Checkpoint& checkpoint,
                                                               const models::Model& model,
                                                               const std::vector<NormContexts>& contexts,
                                                               const ContextKeyOptions& options = {},
                                                               const Progress& progress = {});

/// A token that is among the likeliest after some row.
struct NextToken {
  std::size_t token = 0;
  std::size_t rows = 0;   ///< rows with it among the likeliest
  std::size_t first = 0;  ///< rows where it is the likeliest
  /// Whether it can have the largest logit at all; undecided if the budget did not suffice.
  proof::Answer answer = proof::Answer::undecided;
  double lead_at_most = std::numeric_limits<double>::infinity();  ///< proved, over every row
};

struct NextTokens {
  std::size_t rows = 0;
  /// KL(p ‖ q) in nats, p the model's distribution at a row and q that for the row divided by the mean
  /// deviation instead of its own.
  double mean_divergence = 0.0, median_divergence = 0.0, most_divergence = 0.0;
  double changed = 0.0;             ///< share of the rows whose likeliest token changes with it
  std::vector<NextToken> tokens{};  ///< the most frequent first
  std::size_t left_out = 0;         ///< tokens beyond `NextTokenOptions::most_tokens`
};

struct NextTokenOptions {
  std::size_t top = 10;           ///< tokens a row that count as likeliest
  std::size_t most_rows = 64;     ///< rows that are measured, spread evenly over those given
  std::size_t most_tokens = 256;  ///< tokens whose reachability is decided
  double budget = std::numeric_limits<double>::infinity();  ///< `selectability::ReachOptions::work`
  unsigned threads = 0;
};

/// The logits of `rows`, which entered the final norm, with their own scale and with `mean_sigma` in its
/// place, and whether the likeliest tokens are reachable.
///
/// Shapes    rows (any, width)
///
/// Errors    Shape; Cancelled
///
/// Accuracy  divergences 1e-9 relative, or 1e-13 absolute; reachability is proved, as by
///           `selectability::decide` (tests: test_the_divergence_is_that_of_the_definition,
///           test_likely_tokens_are_reachable_as_reach_says)
///
/// Cost      rows · tokens · width, and tokens · width for each round and likely token
[[nodiscard]] NextTokens next_tokens(const selectability::VocabularyHead& head, MatrixView<const double> rows,
                                     double mean_sigma, const NextTokenOptions& options = {},
                                     const Progress& progress = {});

/// A norm that was watched.
struct WatchedNorm {
  std::string name;  ///< of the module
  const Observer& observer;
};

struct InModel {
  const models::Model* model = nullptr;  ///< the description used; it must outlive this
  std::vector<ContextKeys> heads{};      ///< those that were measured
  std::string final_norm{};              ///< the norm whose rows `next` is about
  std::optional<NextTokens> next{};
  std::string next_refused{};         ///< why there is none; empty otherwise
  std::vector<std::string> tokens{};  ///< names by id; empty where no file names them
};

struct InModelOptions {
  ContextKeyOptions heads{};
  NextTokenOptions next{};
};

/// Whether the module `name` is the norm that `model` calls `norm`: the names are equal, or one is the other
/// behind a prefix that ends in a dot, as a wrapper of the model adds.
[[nodiscard]] bool names_norm(std::string_view name, std::string_view norm);

/// Selectable keys and next tokens for the kept contexts and rows of `watched`, which are norms of `model`.
///
/// Errors    as `models::read_weight`, `models::read_token_names`; Cancelled
///
/// Cost      as `selectable_context_keys` and `next_tokens`
[[nodiscard]] InModel in_model(const files::Checkpoint& checkpoint, const models::Model& model,
                               const std::vector<WatchedNorm>& watched, const InModelOptions& options = {},
                               const Progress& progress = {});

}  // namespace normscope::analysis
