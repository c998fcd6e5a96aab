#pragma once

#include <normscope/files/checkpoint.hpp>

namespace normscope::files {

/// Reads the files of the checkpoint whose format holds checksums, PyTorch's zips, through and compares them.
/// Opening a checkpoint does not, because it maps its elements without reading them.
/// Errors    Format, naming the file and its member
void check_sums(const Checkpoint& checkpoint);

}  // namespace normscope::files
