#include <dlfcn.h>

#include <stdexcept>

#include "problem.hpp"

namespace normscope::bench {

// Loaded in its own namespace, since libtorch contains an older oneDNN.
Peer onednn(const Shared& problem, Task task) {
  static const auto make = [] {
    void* const library = dlopen(NORMSCOPE_ONEDNN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void* const found = library == nullptr ? nullptr : dlsym(library, "normscope_onednn");
    if (found == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<void (*)(const Shared&, Task, Peer&)>(found);
  }();
  Peer peer;
  make(problem, task, peer);
  return peer;
}

}  // namespace normscope::bench
