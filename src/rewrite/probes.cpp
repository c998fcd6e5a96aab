#include "probes.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::rewrite {
namespace {

constexpr std::uint64_t seed = 17;

}  // namespace

double longest_output(const NormSpec& spec) {
  // The radius for the groups' spheres, or for the cube of elementwise kinds.
  const double blocks = static_cast<double>(spec.elementwise() ? spec.width : spec.groups);
  return (spec.elementwise() ? 1.0 : spec.radius()) * std::sqrt(blocks);
}

std::vector<double> normalized(const NormSpec& spec, std::span<const double> row) {
  NormSpec plain = spec;
  plain.gain.clear();
  plain.bias.clear();
  std::vector<double> result(row.size());
  norm::forward(plain, {row.data(), 1, row.size()}, {result.data(), 1, row.size()});
  return result;
}

std::vector<Probe> norm_probes(const NormSpec& spec) {
  Random random(seed);
  std::array<std::vector<double>, probe_count> rows;
  for (std::vector<double>& row : rows) row.resize(spec.width);
  std::size_t largest = 0;
  std::size_t smallest = 0;
  for (std::size_t j = 0; j < spec.width; ++j) {
    rows[0][j] = random.normal();
    rows[1][j] = (random.bits() & 1U) != 0 ? 1.0 : -1.0;
    if (std::abs(spec.gain_at(j)) > std::abs(spec.gain_at(largest))) largest = j;
    if (std::abs(spec.gain_at(j)) < std::abs(spec.gain_at(smallest))) smallest = j;
  }
  rows[2][largest] = 1e3;
  rows[3][smallest] = -1e3;
  std::vector<Probe> probes(spec.width);
  for (std::size_t k = 0; k < probe_count; ++k) {
    const std::vector<double> output = normalized(spec, rows[k]);
    for (std::size_t j = 0; j < spec.width; ++j) probes[j][k] = output[j];
  }
  return probes;
}

std::vector<Probe> writer_probes(std::span<const double> means, std::size_t least_centered) {
  Random random(seed);
  std::vector<Probe> probes(means.size());
  double largest = 0.0;
  for (const double value : means) largest = std::max(largest, std::abs(value));
  for (std::size_t j = 0; j < means.size(); ++j) {
    const double first = random.normal();
    probes[j] = {first, random.normal(), largest > 0.0 ? means[j] / largest : 0.0,
                 j == least_centered ? 1.0 : 0.0};
  }
  return probes;
}

}  // namespace normscope::rewrite
