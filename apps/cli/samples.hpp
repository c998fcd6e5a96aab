#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::cli {

/// Samples read from an array: the first axis counts them, the others are their features.
struct SampleArray {
  std::vector<double> values;
  std::size_t rows = 0;
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, width}; }
};

/// Errors    Io, Format, Shape
[[nodiscard]] SampleArray read_samples(const std::string& name);

/// An array of one axis of integers.
/// Errors    Io, Format, Shape; Argument naming the first entry that is none
[[nodiscard]] std::vector<std::int64_t> read_labels(const std::string& name);

}  // namespace normscope::cli
