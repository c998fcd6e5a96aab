#include <normscope/core/per_thread.hpp>

#include <new>

#include <pthread.h>

namespace normscope::detail {

static_assert(sizeof(pthread_key_t) <= sizeof(unsigned));

ThreadPointer::ThreadPointer(void (*destroy)(void*)) {
  pthread_key_t key{};
  if (pthread_key_create(&key, destroy) != 0) throw std::bad_alloc();
  key_ = key;
}

void* ThreadPointer::get() const { return pthread_getspecific(key_); }

void ThreadPointer::set(void* object) const {
  if (pthread_setspecific(key_, object) != 0) throw std::bad_alloc();
}

}  // namespace normscope::detail
