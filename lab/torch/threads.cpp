#include "threads.hpp"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace normscope::lab {

void use_threads(int threads) {
  at::set_num_threads(threads);
  // OpenBLAS has threads of its own, which torch does not set; another BLAS has no such function.
  using Setter = void (*)(int);
  auto* setter = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (setter != nullptr) setter(threads);
}

}  // namespace normscope::lab
