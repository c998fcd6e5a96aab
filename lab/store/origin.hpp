#pragma once

#include <string>
#include <string_view>

/// Where a run comes from, as the store records it.
namespace normscope::lab {

/// The processor and the number of its threads, "AMD EPYC 9B14, 2 threads"; never empty.
[[nodiscard]] const std::string& this_machine();

/// The commit that this program was built from, as `git describe --always --dirty` names it; empty if it was
/// built outside of a git repository.
[[nodiscard]] std::string_view source_revision();

}  // namespace normscope::lab
