#pragma once

#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>
#include <normscope/selectability/attention.hpp>

namespace normscope::audit {

/// W and b of y = W x + b, row-major, with x the output of the norm that a head reads, and how far each entry
/// may be from the exact one.
struct Projection {
  std::vector<double> weight{};
  std::vector<double> bias{};          ///< empty where there is none
  std::vector<double> weight_error{};  ///< empty where weights are exact
  std::vector<double> bias_error{};

  [[nodiscard]] selectability::MapError error(std::size_t width) const {
    if (weight_error.empty()) return {};
    return {{weight_error.data(), weight_error.size() / width, width}, bias_error};
  }
};

/// A head's queries or keys as maps of the norm's output; where `between` stands between the two, composed
/// with it: W M and W m + b, each entry a sum of n products in about twice the precision, rounded once.
/// Errors    as `model::read_weight`
/// Accuracy  an entry of a composed map is within its error, u |entry| + 32 (n + 2) u² Σ|products|, of the
///           exact one (test: HeadsAudit.BoundsHoldWhereComposedWeightsCancel)
[[nodiscard]] Projection read_projection(const checkpoint::Checkpoint& checkpoint, const model::Linear& part,
                                         const model::Linear* between);

}  // namespace normscope::audit
