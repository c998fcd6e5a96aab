#pragma once

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
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
  /// All that the process's first thread may have: whoever starts a helper may be pinned, or be a helper.
  explicit Cores(int avoided)
      : known_(avoided >= 0 && sched_getaffinity(getpid(), sizeof(allowed_), &allowed_) == 0 &&
               CPU_COUNT(&allowed_) > 1),
        avoided_(avoided) {}

  [[nodiscard]] bool may_have(int core) const { return known_ && core >= 0 && core != avoided_; }
  /// Gives a new helper its first cores.
  void give(pthread_t helper) const {
    if (!known_) return;
    const cpu_set_t others = all_but_avoided();
    pthread_setaffinity_np(helper, sizeof(others), &others);
  }
  void avoid(int core, pthread_t helper) {
    cpu_set_t now;
    const cpu_set_t given = all_but_avoided();
    // Whoever else has moved it has the say from now on.
    known_ = pthread_getaffinity_np(helper, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &given);
    avoided_ = core;
    give(helper);
  }

 private:
  [[nodiscard]] cpu_set_t all_but_avoided() const {
    cpu_set_t others = allowed_;
    CPU_CLR(avoided_, &others);
    return others;
  }

  cpu_set_t allowed_{};
  bool known_;
  int avoided_;
};

#else

inline int current_core() { return -1; }

class Cores {
 public:
  explicit Cores(int /*avoided*/) {}
  [[nodiscard]] static bool may_have(int /*core*/) { return false; }
  static void give(pthread_t /*helper*/) {}
  static void avoid(int /*core*/, pthread_t /*helper*/) {}
};

#endif

}  // namespace normscope
