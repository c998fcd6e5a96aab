#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/progress.hpp>
#include <normscope/model/model.hpp>
#include <normscope/selectability/attention.hpp>

/// What every attention head of a checkpoint can do in any context.
namespace normscope::audit {

/// Of one head, in the passes in which it reads one norm: its extremes, or why there are none.
struct HeadReach {
  std::size_t head = 0;  ///< index in `model.heads`
  std::string norm{};    ///< name of the norm it reads, empty when unknown
  /// "first" or "later" where layers that share their weights read another norm after the first pass
  /// (ALBERT), and the head stands once for each; empty otherwise.
  std::string pass{};
  std::optional<selectability::Attention> attention{};
  std::string refused{};     ///< empty where `attention` is there
  std::string query_norm{};  ///< name of the norm of their own that queries go through, or empty
  std::string key_norm{};
  /// Kinds, and eps behind the fills: what a checker needs of norms beyond their arrays.
  NormKind norm_kind = NormKind::layer;
  NormKind query_norm_kind = NormKind::layer;
  NormKind key_norm_kind = NormKind::layer;
  double query_norm_eps = 0.0;
  double key_norm_eps = 0.0;
};

/// What contexts heads are bounded over.
struct HeadContexts {
  /// Positions at most, instead of what the model was made for; 0 leaves that.
  std::size_t positions = 0;
  /// Distances times the cube of a head's width, for all rotary heads together: beyond that, distances are
  /// not enumerated, and the bounds are a few percent looser. Six times the number of multiplications.
  double work = 0x1p40;
  /// When no further heads are started: those left are refused. The first heads of all layers come first.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

/// The extremes of each of `model.heads`, in their order, one entry for each norm that it reads. Heads whose
/// queries or keys are not known to be linear in the output of one norm, but for norms of their own, and
/// heads whose scores the configuration changes in a way that is not modelled, are refused, with the reason.
///
/// Errors    as `model::read_weight`; Cancelled
/// Cost      as `selectability::attention`, a head; `threads` heads are in memory at a time. Distances are
///           enumerated within `contexts.work`
[[nodiscard]] std::vector<HeadReach> reach_of_heads(const checkpoint::Checkpoint& checkpoint,
                                                    const model::Model& model, unsigned threads = 0,
                                                    const Progress& progress = {},
                                                    const HeadContexts& contexts = {});

}  // namespace normscope::audit
