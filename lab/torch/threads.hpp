#pragma once

namespace normscope::lab {

/// Limits torch and its BLAS. With one thread, numbers do not depend on the machine's cores and concurrent
/// processes do not compete.
void use_threads(int threads);

}  // namespace normscope::lab
