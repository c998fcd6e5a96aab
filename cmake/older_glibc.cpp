// What glibc 2.28 lacks of what Debian 12's headers and C++ runtime ask for. The linker calls `__wrap_f`
// instead of `f` (OlderGlibc.cmake).

#include <pthread.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>

extern "C" {

/// A variable of glibc 2.32; false makes reference counts atomic always.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// glibc 2.29 has new versions of these, which differ in how they report errors only.
#define NORMSCOPE_FIRST_VERSION(name) __asm__(".symver normscope_first_" #name "," #name "@GLIBC_2.2.5")
NORMSCOPE_FIRST_VERSION(exp);
NORMSCOPE_FIRST_VERSION(exp2);
NORMSCOPE_FIRST_VERSION(log);
NORMSCOPE_FIRST_VERSION(log2);
NORMSCOPE_FIRST_VERSION(pow);
double normscope_first_exp(double x);
double normscope_first_exp2(double x);
double normscope_first_log(double x);
double normscope_first_log2(double x);
double normscope_first_pow(double x, double y);
double __wrap_exp(double x) { return normscope_first_exp(x); }
double __wrap_exp2(double x) { return normscope_first_exp2(x); }
double __wrap_log(double x) { return normscope_first_log(x); }
double __wrap_log2(double x) { return normscope_first_log2(x); }
double __wrap_pow(double x, double y) { return normscope_first_pow(x, y); }

/// A function of glibc 2.30.
ssize_t __wrap_getdents64(int folder, void* entries, std::size_t size) {
  return ::syscall(SYS_getdents64, folder, entries, size);
}

/// A function of glibc 2.30. It waits as long by the clock of `pthread_cond_timedwait`; callers check their
/// own clock afterwards.
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  constexpr std::int64_t second = 1'000'000'000;
  timespec here{};
  timespec there{};
  ::clock_gettime(clock, &here);
  ::clock_gettime(CLOCK_REALTIME, &there);
  constexpr std::int64_t longest = 1'000'000'000;  // seconds, after which it wakes too early
  const std::int64_t seconds = std::min<std::int64_t>(until->tv_sec - here.tv_sec, longest);
  const std::int64_t left = std::max<std::int64_t>(seconds * second + until->tv_nsec - here.tv_nsec, 0);
  const std::int64_t end = there.tv_nsec + left;
  const timespec at{.tv_sec = there.tv_sec + end / second, .tv_nsec = end % second};
  return ::pthread_cond_timedwait(condition, mutex, &at);
}

/// A function of glibc 2.36 that std::random_device calls.
std::uint32_t __wrap_arc4random() {
  std::uint32_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != sizeof value) continue;
  return value;
}

}  // extern "C"
