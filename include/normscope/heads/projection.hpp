#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/heads/attention.hpp>
#include <normscope/models/model.hpp>

/// How a head's scores come from the norm that it reads.
namespace normscope::heads {

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
