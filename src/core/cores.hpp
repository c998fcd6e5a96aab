#pragma once

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

/// The CPUs that threads run on, where the system reports them.
namespace normscope {

#if defined(__linux__)

inline int current_core() { return sched_getcpu(); }

/// CPU affinity of workers: a worker avoids the CPU of the caller that last used it. In a virtual machine
/// idle CPUs look busy to Linux, which then places a woken thread on the CPU of the thread that woke it.
/// There the two compete, or the worker waits until the caller has done all the work.
class Cores {
 public:
  /// The affinity of the process's first thread, since the thread that starts a worker may be pinned, or be a
  /// worker itself.
  explicit Cores(int avoided)
      : known_(avoided >= 0 && sched_getaffinity(getpid(), sizeof(allowed_), &allowed_) == 0 &&
               CPU_COUNT(&allowed_) > 1),
        avoided_(avoided) {}

  [[nodiscard]] bool may_have(int core) const { return known_ && core != avoided_; }
  /// Sets the initial affinity of a new worker.
  void give(pthread_t worker) const {
    if (!known_) return;
    const cpu_set_t others = all_but_avoided();
    pthread_setaffinity_np(worker, sizeof(others), &others);
  }
  void avoid(int core, pthread_t worker) {
    cpu_set_t now;
    const cpu_set_t given = all_but_avoided();
    // If something else has changed the affinity, it is left as it is.
    known_ = pthread_getaffinity_np(worker, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &given);
    avoided_ = core;
    give(worker);
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
  static void give(pthread_t /*worker*/) {}
  static void avoid(int /*core*/, pthread_t /*worker*/) {}
};

#endif

}  // namespace normscope
