#pragma once

namespace normscope::lab {

/// Limits torch to one thread, so that numbers do not depend on the machine's cores and concurrent processes
/// do not compete.
void use_one_thread();

}  // namespace normscope::lab
