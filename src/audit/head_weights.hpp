#pragma once

#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/model/model.hpp>

namespace normscope::audit {

/// W and b of y = W x + b, row-major, with x the output of the norm that a head reads.
struct Projection {
  std::vector<double> weight{};
  std::vector<double> bias{};  ///< empty where there is none
};

/// A head's queries or keys as maps of the norm's output; where `between` stands between the two, composed
/// with it: W M and W m + b.
/// Accuracy  an entry of a composed map is within 2 u of the exact one (test:
/// HeadsAudit.ComposesTheFirstPass) Errors    as `model::read_weight`
[[nodiscard]] Projection read_projection(const checkpoint::Checkpoint& checkpoint, const model::Linear& part,
                                         const model::Linear* between);

}  // namespace normscope::audit
