#pragma once

namespace normscope::lab {

/// Lets torch compute with one thread: numbers do not depend on the machine's cores, and processes that run
/// side by side do not get into each other's way.
void use_one_thread();

}  // namespace normscope::lab
