#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/random.hpp>

#include "support/gains.hpp"

namespace normscope::test {

/// The kinds of the table that normalize.
inline std::vector<NormKind> normalizing_kinds() {
  std::vector<NormKind> kinds;
  for (const NormKindFacts& row : norm_kinds) {
    if (!is_elementwise(row.kind)) kinds.push_back(row.kind);
  }
  return kinds;
}

/// The elementwise kinds of the table, each with its parameters.
inline std::vector<NormSpec> elementwise_norms(std::size_t width, double alpha, double shift) {
  std::vector<NormSpec> specs;
  for (const NormKindFacts& row : norm_kinds) {
    if (!is_elementwise(row.kind)) continue;
    specs.push_back({.kind = row.kind, .width = width, .alpha = alpha, .shift = row.has_shift ? shift : 0.0});
  }
  return specs;
}

/// By which a kind divides the sum of the squares of `count` entries, beside the table that the library asks.
inline double entries_a_square(NormKind kind, std::size_t count) {
  if (is_elementwise(kind)) throw std::logic_error("an elementwise kind divides by nothing");
  return kind == NormKind::spherical ? 1.0 : static_cast<double>(count);
}

/// f of an elementwise kind and its derivatives in long double, with formulas that differ from the library's.
struct ExactActivation {
  using Function = long double (*)(long double t);
  explicit ExactActivation(NormKind kind) {
    switch (kind) {
      case NormKind::dyt:
        value = [](long double t) { return std::tanh(t); };
        slope = [](long double t) { return 1.0L / (std::cosh(t) * std::cosh(t)); };
        curvature = [](long double t) { return -2.0L * std::tanh(t) / (std::cosh(t) * std::cosh(t)); };
        return;
      case NormKind::derf:
        value = [](long double t) { return std::erf(t); };
        slope = [](long double t) { return 2.0L / std::sqrt(std::acos(-1.0L)) * std::exp(-t * t); };
        curvature = [](long double t) { return -4.0L * t / std::sqrt(std::acos(-1.0L)) * std::exp(-t * t); };
        return;
      case NormKind::layer:
      case NormKind::rms:
      case NormKind::spherical: throw std::logic_error("a kind that normalizes");
    }
  }
  Function value = nullptr;
  Function slope = nullptr;
  Function curvature = nullptr;
};

/// Norms of every kind that normalizes, with and without groups, eps and gain, of `width` = a multiple of 12.
inline std::vector<NormSpec> norms_of_every_kind(std::size_t width) {
  std::vector<NormSpec> specs;
  for (const NormKind kind : normalizing_kinds()) {
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
