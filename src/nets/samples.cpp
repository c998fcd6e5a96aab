#include "samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>

namespace normscope::nets {
namespace {

void check_input(MatrixView<const double> x, std::span<const std::int64_t> labels) {
  if (x.rows() == 0 || x.width() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("construct: x is {} x {}, expected at least one row and one feature", x.rows(),
                            x.width()));
  }
  if (labels.size() != x.rows()) {
    throw Error(ErrorCode::Shape,
                fmt::format("construct: x has {} rows, there are {} labels", x.rows(), labels.size()));
  }
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (std::size_t i = 0; i < x.width(); ++i) {
      if (!std::isfinite(x.row(row)[i])) {
        throw Error(ErrorCode::Argument, fmt::format("construct: x[{}][{}] is {}, expected a finite number",
                                                     row, i, shown(x.row(row)[i])));
      }
    }
  }
}

std::uint64_t hash(std::span<const double> row) {
  std::uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (const double value : row) {
    const double plain = value + 0.0;  // -0 is 0
    std::uint64_t word = 0;
    std::memcpy(&word, &plain, sizeof word);
    state = (state ^ word) * 0xbf58476d1ce4e5b9ULL;
    state ^= state >> 29;
  }
  return state;
}

bool equal(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace

Samples distinct_samples(MatrixView<const double> x, std::span<const std::int64_t> labels,
                         bool first_label_wins) {
  check_input(x, labels);
  Samples samples;
  samples.wanted.assign(labels.begin(), labels.end());
  std::unordered_multimap<std::uint64_t, std::size_t> seen;
  seen.reserve(x.rows());
  for (std::size_t row = 0; row < x.rows(); ++row) {
    const std::uint64_t key = hash(x.row(row));
    const auto [begin, end] = seen.equal_range(key);
    const auto same =
        std::find_if(begin, end, [&](const auto& entry) { return equal(x.row(entry.second), x.row(row)); });
    if (same == end) {
      seen.emplace(key, row);
      samples.rows.push_back(row);
      continue;
    }
    const std::int64_t first = samples.wanted[same->second];
    if (first == labels[row]) continue;
    if (!first_label_wins) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("construct: rows {} and {} are equal, their labels are {} and {}; expected one label "
                      "a sample",
                      same->second, row, first, labels[row]));
    }
    samples.wanted[row] = first;
    ++samples.relabelled;
  }
  samples.names = samples.wanted;
  std::sort(samples.names.begin(), samples.names.end());
  samples.names.erase(std::unique(samples.names.begin(), samples.names.end()), samples.names.end());
  for (const std::size_t row : samples.rows) {
    const auto name = std::lower_bound(samples.names.begin(), samples.names.end(), samples.wanted[row]);
    samples.classes.push_back(static_cast<std::uint32_t>(name - samples.names.begin()));
  }
  return samples;
}

std::vector<double> gather(MatrixView<const double> x, const std::vector<std::size_t>& rows) {
  std::vector<double> values;
  values.reserve(rows.size() * x.width());
  for (const std::size_t row : rows) values.insert(values.end(), x.row(row).begin(), x.row(row).end());
  return values;
}

}  // namespace normscope::nets
