#pragma once

#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>
#include <normscope/selectability/attention.hpp>

namespace normscope::audit {

/// W and b of y = W x + b, row-major, where x is the output of the norm that a head reads, and error bounds
/// of their entries.
struct Projection {
  std::vector<double> weight{};
  std::vector<double> bias{};          ///< empty if there is none
  std::vector<double> weight_error{};  ///< empty if weights are exact
  std::vector<double> bias_error{};

  [[nodiscard]] selectability::MapError error(std::size_t width) const {
    if (weight_error.empty()) return {};
    return {{weight_error.data(), weight_error.size() / width, width}, bias_error};
  }
};

/// A head's queries or keys as maps of the norm's output, composed with `between` if there is one: W M and W
/// m + b. Each entry of n products is computed in about twice the precision and rounded once.
///
/// Errors    as `model::read_weight`
///
/// Accuracy  an entry of a composed map is within its error, u |entry| + 32 (n + 2) u² Σ|products|, of the
///           exact one (test: HeadsAudit.BoundsHoldWhereComposedWeightsCancel)
[[nodiscard]] Projection read_projection(const checkpoint::Checkpoint& checkpoint, const model::Linear& part,
                                         const model::Linear* between);

}  // namespace normscope::audit
