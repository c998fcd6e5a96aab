#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>

namespace normscope::rewrite {

/// Inputs tried at a time.
inline constexpr std::size_t probe_count = 4;
using Probe = std::array<double, probe_count>;

/// Length that no output of the norm, before gain and bias, exceeds.
[[nodiscard]] double longest_output(const NormSpec& spec);

/// The norm of one row without its gain and bias, by the definition.
[[nodiscard]] std::vector<double> normalized(const NormSpec& spec, std::span<const double> row);

/// Outputs of the norm, before gain and bias, for a random row, a row of random signs, and rows that peak
/// where the gain is largest and smallest: a Probe for each feature.
[[nodiscard]] std::vector<Probe> norm_probes(const NormSpec& spec);

/// Inputs of a map that writes to a stream: two random ones, the means of what its inputs write (the input
/// for which the mean is largest), and the single input whose mean is largest against what it writes beside
/// it.
[[nodiscard]] std::vector<Probe> writer_probes(std::span<const double> means, std::size_t least_centered);

}  // namespace normscope::rewrite
