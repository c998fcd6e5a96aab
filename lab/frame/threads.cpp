#include "threads.hpp"

#include <ATen/Parallel.h>

namespace normscope::lab {

void use_one_thread() { at::set_num_threads(1); }

}  // namespace normscope::lab
