#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "matrix_input.hpp"

namespace normscope::cli {

/// Samples in an array: its first axis counts them, the others are their features.
///
/// Errors    Io, Format, Shape
[[nodiscard]] MatrixInput read_samples(const files::OpenedArray& array);

/// An array of one axis of integers.
///
/// Errors    Io, Format, Shape; Argument naming the first entry that is not an integer
[[nodiscard]] std::vector<std::int64_t> read_labels(const files::OpenedArray& array);

}  // namespace normscope::cli
