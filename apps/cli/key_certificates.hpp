#pragma once

#include <string>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::cli {

/// The files that certificates in `folder` are; none for an empty name.
[[nodiscard]] std::vector<std::string> certificate_files(const std::string& folder);

/// Writes keys.npy (keys × width, as they were asked about), selectable.npy (their rows), queries.npy (one
/// for each), margins.npy, unselectable.npy (rows), residuals.npy and weights.npy (key, other key, λ).
/// Nothing for an empty name. Errors    Io
void write_certificates(const std::string& folder, MatrixView<const double> keys,
                        const selectability::Selection& selection);

}  // namespace normscope::cli
