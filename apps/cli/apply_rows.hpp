#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include <normscope/core/dtype.hpp>
#include <normscope/core/norm_spec.hpp>

namespace normscope::cli {

/// Rows as a file holds them: little-endian elements, which need not be aligned.
struct StoredRows {
  Dtype dtype = Dtype::F64;
  std::span<const std::byte> bytes{};
  std::size_t rows = 0;
  std::size_t width = 0;
};

/// Applies a norm, or the step of it named `step`, and passes the results to `write`, a block of rows at a
/// time, as elements of `npy_dtype(x.dtype)`. The kernels compute the norm in the type of the rows: bfloat16
/// in float32, which represents it exactly; in float64 for all other types, and if float32 would round an
/// entry of gain or bias. Steps are computed in float64.
///
/// Accuracy  as `norm::normalize` for the type of the computation, plus one rounding if the written type is
///           narrower
///
/// Cost      memory for a few MiB of rows, or one row where that is more
void apply_rows(const NormSpec& spec, const std::string& step, const StoredRows& x,
                const std::function<void(std::span<const std::byte>)>& write, unsigned threads);

}  // namespace normscope::cli
