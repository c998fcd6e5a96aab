#pragma once

#include <string>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::cli {

/// The files of certificates in `folder`; none if its name is empty.
[[nodiscard]] std::vector<std::string> certificate_files(const std::string& folder);

/// Writes keys.npy (keys × width, after the norm), selectable.npy (their rows), queries.npy (one per
/// selectable key), margins.npy, unselectable.npy (rows), residuals.npy and weights.npy (key, other key, λ).
/// Does nothing if the name is empty.
///
/// Errors    Io
void write_certificates(const std::string& folder, MatrixView<const double> keys,
                        const selectability::Selection& selection);

}  // namespace normscope::cli
