#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>

namespace normscope::rewrite {

/// Number of inputs tried at a time.
inline constexpr std::size_t probe_count = 4;
using Probe = std::array<double, probe_count>;

/// Upper bound of the length of the norm's outputs before gain and bias.
[[nodiscard]] double longest_output(const NormSpec& spec);

/// The norm of one row without its gain and bias, by the definition.
[[nodiscard]] std::vector<double> normalized(const NormSpec& spec, std::span<const double> row);

/// Outputs of the norm, before gain and bias, for a random row, a row of random signs, and rows that peak
/// where the gain is largest and smallest: a Probe for each feature.
[[nodiscard]] std::vector<Probe> norm_probes(const NormSpec& spec);

/// Inputs of a map that writes to a stream: two random ones; the means of the vectors that its inputs write,
/// which is the input whose output has the largest mean; and the single input whose vector has the largest
/// mean relative to its deviations.
[[nodiscard]] std::vector<Probe> writer_probes(std::span<const double> means, std::size_t least_centered);

}  // namespace normscope::rewrite
