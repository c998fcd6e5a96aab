#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/random.hpp>

#include "support/gains.hpp"

namespace normscope::test {

/// Norms of every kind, with and without groups, eps and gain, of `width` = a multiple of 12.
inline std::vector<NormSpec> norms_of_every_kind(std::size_t width) {
  std::vector<NormSpec> specs;
  for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::spherical}) {
    for (const std::size_t groups : {1, 2, 4}) {
      for (const double eps : {0.0, 1e-5, 0.5}) {
        specs.push_back({.kind = kind, .width = width, .groups = groups, .eps = eps});
        specs.push_back({.kind = kind,
                         .width = width,
                         .groups = groups,
                         .eps = eps,
                         .gain = random_gain(width, "signed", specs.size())});
      }
    }
  }
  return specs;
}

/// `count` standard normal numbers.
inline std::vector<double> random_values(std::size_t count, std::uint64_t seed, double mean = 0.0) {
  Random random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = mean + random.normal();
  return values;
}

/// The norm in words, for messages.
inline std::string describe(const NormSpec& spec) {
  return std::string(to_string(spec.kind)) + " groups " + std::to_string(spec.groups) + " eps " +
         std::to_string(spec.eps) + (spec.gain.empty() ? "" : " with gain");
}

}  // namespace normscope::test
