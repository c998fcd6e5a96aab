#include "output_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>

#include "probes.hpp"

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

namespace {

template <std::size_t count>
void mix(std::array<std::uint64_t, count>& lanes, const std::byte* bytes) {
  std::array<std::uint64_t, count> words{};
  std::memcpy(words.data(), bytes, sizeof words);
  for (std::size_t lane = 0; lane < count; ++lane) {
    const std::uint64_t mixed = (lanes[lane] ^ words[lane]) * 0x9e3779b97f4a7c15U;
    lanes[lane] = mixed ^ (mixed >> 29U);
  }
}

}  // namespace

void Fingerprint::add(std::span<const std::byte> bytes) {
  const std::size_t held = size_ % sizeof(Words);
  size_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(bytes.size(), sizeof(Words) - held);
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < sizeof(Words)) return;
    mix(mixed_, rest_.data());
  }
  for (; bytes.size() >= sizeof(Words); bytes = bytes.subspan(sizeof(Words))) mix(mixed_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

std::uint64_t Fingerprint::value() const {
  Words mixed = mixed_;
  if (const std::size_t held = size_ % sizeof(Words); held > 0) {
    std::array<std::byte, sizeof(Words)> padded{};
    std::copy_n(rest_.begin(), held, padded.begin());
    mix(mixed, padded.data());
  }
  std::uint64_t result = size_;
  for (const std::uint64_t lane : mixed) result = (result ^ lane) * 0xbf58476d1ce4e5b9U;
  return result;
}

std::uint64_t fingerprint_of(const std::filesystem::path& path) {
  const RangedFile file(path);
  std::vector<std::byte> piece(std::size_t{1} << 20U);
  Fingerprint result;
  for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
    const std::span<std::byte> part = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - at)));
    file.read(at, part);
    result.add(part);
  }
  return result.value();
}

}  // namespace normscope::rewrite
