#pragma once

/// Checks a documented precondition in builds with `NORMSCOPE_ASSERTIONS`; free in the others.
#ifdef NORMSCOPE_ASSERTIONS
#include <cstdio>
#include <cstdlib>
#define NORMSCOPE_ASSERT(condition) \
  ((condition)                      \
       ? void()                     \
       : (std::fprintf(stderr, "%s:%d: precondition %s\n", __FILE__, __LINE__, #condition), std::abort()))
#else
#define NORMSCOPE_ASSERT(condition) static_cast<void>(0)
#endif
