#pragma once

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#endif

/// Which cores threads run on, where the system says so.
namespace normscope {

#if defined(__linux__)

inline int current_core() { return sched_getcpu(); }

/// Where a helper may run: not on the core of the caller that last wanted it. A thread that is woken is put
/// on its waker's core where no other seems free, as cores at rest do not in a virtual machine. There it
/// takes its caller's time, or waits until that has done all.
class Cores {
 public:
  /// Those of the calling thread.
  Cores() : known_(sched_getaffinity(0, sizeof(allowed_), &allowed_) == 0 && CPU_COUNT(&allowed_) > 1) {}

  [[nodiscard]] bool may_have(int core) const { return known_ && core >= 0 && core != avoided_; }
  void avoid(int core, pthread_t helper) {
    avoided_ = core;
    cpu_set_t others = allowed_;
    CPU_CLR(core, &others);
    pthread_setaffinity_np(helper, sizeof(others), &others);
  }

 private:
  cpu_set_t allowed_{};
  bool known_;
  int avoided_ = -1;
};

#else

inline int current_core() { return -1; }

class Cores {
 public:
  [[nodiscard]] static bool may_have(int /*core*/) { return false; }
  static void avoid(int /*core*/, pthread_t /*helper*/) {}
};

#endif

}  // namespace normscope
