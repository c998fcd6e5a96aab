// What glibc 2.28 lacks of what Debian 12's headers and C++ runtime ask for (OlderGlibc.cmake).

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

extern "C" {

/// False: reference counts are always atomic.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// The linker calls these instead of glibc 2.29's versions, which differ in how they report errors only.
#define NORMSCOPE_FIRST_VERSION(name) \
  __asm__(".symver normscope_first_" #name "," #name "@GLIBC_2.2.5")
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

/// Of glibc 2.30.
ssize_t __wrap_getdents64(int folder, void* entries, std::size_t size) {
  return ::syscall(SYS_getdents64, folder, entries, size);
}

}  // extern "C"
