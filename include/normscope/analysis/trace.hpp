#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
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
  double length = 0.0;      ///< |x|
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

struct TraceOptions {
  std::size_t axes = 8;        ///< longest axes of a norm in which places are given
  std::size_t likeliest = 10;  ///< tokens a position
  /// Multiplications after which no further head, then no further token, is started.
  double budget = 1e11;
  /// Entries of the unembedding up to which it is decided which likely tokens are in reach.
  std::size_t most_reach = std::size_t{1} << 26;
  unsigned threads = 0;
};

struct TokenTrace {
  const models::Model* model = nullptr;  ///< the description used; it must outlive this
  std::vector<std::size_t> tokens{};
  std::vector<TracedNorm> norms{};  ///< of the residual stream, in the order of the forward pass
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

/// The norms in the form of `results::activations`. Refers to `trace`.
[[nodiscard]] std::vector<ObservedNorm> observed_norms(const TokenTrace& trace);

}  // namespace normscope::analysis
