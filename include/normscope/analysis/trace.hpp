#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <normscope/analysis/in_model.hpp>
#include <normscope/analysis/observer.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/models/model.hpp>

/// A text through a model: what each norm on the residual stream does with each token, which keys of the
/// text each head can select, and what follows.
namespace normscope::analysis {

/// The row x of one token that enters a norm y = g ⊙ (x − m)/σ + b.
struct TokenAtNorm {
  double length = 0.0;  ///< |x|
  double added = 0.0;   ///< length of what was added to the stream since the norm before; |x| at the first
  double ones_share = 0.0;  ///< share of |x|² along all-ones, which a projection removes
  double sigma = 0.0;
  double radius = 0.0;  ///< |x − m|/(R σ): 1 on the surface of the ellipsoid, less by eps
  /// (y − b) along the longest axes, in units of the semi-axes: from −1 to 1.
  std::vector<double> place{};
};

/// A principal axis of a norm's ellipsoid.
struct TracedAxis {
  double length = 0.0;
  std::size_t coordinate = 0;  ///< of the largest entry of its unit vector
  double weight = 0.0;         ///< that entry
};

struct TracedNorm {
  std::size_t norm = 0;            ///< index in `model.norms`
  std::vector<TracedAxis> axes{};  ///< the longest, in order
  std::vector<TokenAtNorm> tokens{};
  Observer observer;  ///< has seen the rows
};

/// The attention weights of one head.
struct TracedAttention {
  std::size_t head = 0;  ///< index in `model.heads`
  /// A row for each query from `TokenTrace::first_query` on, with a weight for each position up to its own.
  std::vector<std::vector<double>> weights{};
};

struct TraceOptions {
  std::size_t axes = 8;        ///< longest axes of a norm in which places are given
  std::size_t likeliest = 10;  ///< tokens a position
  /// Attention weights that are kept, of all heads together: those of the last queries.
  std::size_t attention = std::size_t{1} << 16;
  /// Multiplications after which no further head, then no further token, is started.
  double budget = 1e11;
  /// Entries of the unembedding up to which it is decided which likely tokens are in reach.
  std::size_t most_reach = std::size_t{1} << 26;
  unsigned threads = 0;
};

struct TokenTrace {
  const models::Model* model = nullptr;  ///< the description used; it must outlive this
  std::vector<std::size_t> tokens{};
  std::vector<TracedNorm> norms{};           ///< of the residual stream, in the order of the forward pass
  std::size_t first_query = 0;               ///< position of the first query whose attention weights are kept
  std::vector<TracedAttention> attention{};  ///< of every head, in the order of the forward pass
  std::vector<forward::Prediction> predictions{};
  /// Keys of each head; whether the likely tokens are in reach.
  InModel within{};
  std::size_t key_positions = 0;  ///< first tokens whose keys compete in `within`
};

/// Errors    as `forward::Decoder`, `forward::Decoder::run`; Unsupported for norms of several groups
///
/// Cost      the forward pass, O(width²) a norm, and as `in_model`
[[nodiscard]] TokenTrace trace(const files::Checkpoint& checkpoint, const models::Model& model,
                               std::span<const std::size_t> tokens, const TraceOptions& options = {},
                               const Progress& progress = {});

/// The probability of a token after some row x of the final norm's input, and after x + δ.
struct ChangedToken {
  std::size_t token = 0;
  double before = 0.0;  ///< after x
  double exact = 0.0;   ///< after x + δ
  double frozen = 0.0;  ///< after x + δ, if the norm divided by what it divides x by
};

/// The `likeliest` tokens after `row` and those after `row` + `change`, the likeliest of these first. With
/// the change of `Attribution::changes`, what follows without a component of the stream.
///
/// Shapes    row, change (norm.width)
///
/// Errors    Unsupported for elementwise norms, which divide by nothing, and for several groups; as
///           `forward::Decoder::logits`
///
/// Accuracy  (test: "removes a component" of explorer/engine/tests/trace.test.ts, against `attribute`)
[[nodiscard]] std::vector<ChangedToken> tokens_after_change(const forward::Decoder& decoder,
                                                            const NormSpec& norm, std::span<const double> row,
                                                            std::span<const double> change,
                                                            std::size_t likeliest,
                                                            const Progress& progress = {});

/// The norms in the form of `results::activations`. Refers to `trace`.
[[nodiscard]] std::vector<ObservedNorm> observed_norms(const TokenTrace& trace);

/// The norms on the residual stream when the model reads tokens, as `watch` of the Python package sees them.
struct ObservedTokens {
  std::size_t tokens = 0;  ///< that were read, from the first
  std::vector<Observer> observers{};
  std::vector<ObservedNorm> norms{};  ///< in the order of the forward pass; they refer to `observers`
  std::vector<std::pair<std::string, std::string>> not_understood{};  ///< other norms, with the reason
  InModel within{};
};

struct ObserveOptions {
  /// Multiplications for the forward passes, for keys, and for the reach of likely tokens, each.
  double budget = std::numeric_limits<double>::infinity();
  unsigned threads = 0;
};

/// Runs the model over the tokens, cut into contexts of its length or `longest_observed`, as far as the
/// budget goes, at least over `least_observed` of them. `model` must outlive the result.
///
/// Errors    as `forward::Decoder`, `forward::Decoder::run`, `in_model`; Argument for no tokens
///
/// Cost      the forward passes, and as `in_model`
[[nodiscard]] ObservedTokens observe_tokens(const files::Checkpoint& checkpoint, const models::Model& model,
                                            std::span<const std::size_t> tokens,
                                            const ObserveOptions& options = {},
                                            const Progress& progress = {});

/// Tokens that are read whatever the budget, and those of the longest context.
inline constexpr std::size_t least_observed = 64;
inline constexpr std::size_t longest_observed = 1024;

}  // namespace normscope::analysis
