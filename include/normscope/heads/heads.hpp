#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/heads/attention.hpp>
#include <normscope/models/model.hpp>

/// Bounds of every attention head of a checkpoint, in any context.
namespace normscope::heads {

/// The extremes of one head in the passes in which it reads one norm, or the reason why there are none.
struct HeadReach {
  std::size_t head = 0;  ///< index in `model.heads`
  std::string norm{};    ///< name of the norm it reads, empty when unknown
  /// "first" or "later" if layers that share their weights read another norm after the first pass (ALBERT);
  /// the head is then listed once for each. Empty otherwise.
  std::string pass{};
  std::optional<Attention> attention{};
  std::string refused{};     ///< empty where `attention` is there
  bool left_out = false;     ///< whether it is refused because the budget did not suffice
  std::string query_norm{};  ///< name of the norm of their own that queries go through, or empty
  std::string key_norm{};
  /// Kinds, and eps of the norms in `query_norm` and `key_norm`, which a checker needs beside their arrays.
  NormKind norm_kind = NormKind::layer;
  NormKind query_norm_kind = NormKind::layer;
  NormKind key_norm_kind = NormKind::layer;
  double query_norm_eps = 0.0;
  double key_norm_eps = 0.0;
};

/// The contexts over which heads are bounded.
struct HeadContexts {
  /// Largest number of positions; 0 for the context length that the model was trained for.
  std::size_t positions = 0;
  /// Distances times the cube of a head's width, for all rotary heads together: beyond that, distances are
  /// not enumerated, and the bounds are a few percent looser. Six times the number of multiplications.
  double work = 0x1p40;
  /// Estimated multiplications in float64 of all heads that are bounded: those that do not fit are refused.
  /// The first heads of all layers come first. The same heads are bounded on every machine.
  double budget = std::numeric_limits<double>::infinity();
};

/// The extremes of each of `model.heads`, in their order, one entry for each norm that it reads. A head is
/// refused, with the reason, if its queries or keys are not known to be linear in the output of one norm
/// (followed by norms of their own, if any), or if the configuration changes its scores in a way that is not
/// modelled.
///
/// Errors    as `models::read_weight`; Cancelled
///
/// Cost      as `attention`, a head; `threads` heads are in memory at a time. Distances are
///           enumerated within `contexts.work`
[[nodiscard]] std::vector<HeadReach> reach_of_heads(const files::Checkpoint& checkpoint,
                                                    const models::Model& model, unsigned threads = 0,
                                                    const Progress& progress = {},
                                                    const HeadContexts& contexts = {});

// How a head's scores come from the norm that it reads.

/// Why a head's scores are not q·k for two linear maps of the output of the norm `read`, apart from norms of
/// the head's own; empty if they are. `between` is null, or the map between that norm and the head's.
[[nodiscard]] std::string head_refusal(const models::Model& model, const models::Head& head,
                                       const std::string& read, const models::Linear* between);

/// W and b of y = W x + b, row-major, where x is the output of the norm that a head reads, and error bounds
/// of their entries.
struct Projection {
  std::vector<double> weight{};
  std::vector<double> bias{};          ///< empty if there is none
  std::vector<double> weight_error{};  ///< empty if weights are exact
  std::vector<double> bias_error{};

  [[nodiscard]] MapError error(std::size_t width) const {
    if (weight_error.empty()) return {};
    return {{weight_error.data(), weight_error.size() / width, width}, bias_error};
  }
};

/// A head's queries or keys as maps of the norm's output, composed with `between` if there is one: W M and W
/// m + b. Each entry of n products is computed in about twice the precision and rounded once.
///
/// Errors    as `models::read_weight`
///
/// Accuracy  an entry of a composed map is within its error, u |entry| + 32 (n + 2) u² Σ|products|, of the
///           exact one (test: HeadsAudit.BoundsHoldWhereComposedWeightsCancel)
[[nodiscard]] Projection read_projection(const files::Checkpoint& checkpoint, const models::Linear& part,
                                         const models::Linear* between);

}  // namespace normscope::heads
