#pragma once

#include <string>

#include <fmt/format.h>

#include <normscope/model/model.hpp>

namespace normscope::audit {

/// Why nothing is proved about the readers of `norm`.
///
/// Requires  the norm does not normalize
[[nodiscard]] inline std::string not_normalizing(const model::Norm& norm) {
  return norm.effect() == NormEffect::off
             ? fmt::format("not modelled: {} has eps {:g}, so normalization is off", norm.name, norm.eps)
             : fmt::format("not modelled: {} is {}, an elementwise kind", norm.name, facts(norm.kind).title);
}

}  // namespace normscope::audit
