#pragma once

#include <memory>

namespace normscope {
namespace detail {

/// A pointer for each thread, null at first; `destroy` is called with it when its thread ends.
///
/// Errors    std::bad_alloc
class ThreadPointer {
 public:
  explicit ThreadPointer(void (*destroy)(void*));
  [[nodiscard]] void* get() const;
  void set(void* object) const;

 private:
  unsigned key_ = 0;
};

}  // namespace detail

/// One T for each thread, made when the thread first asks for it and destroyed when the thread ends; that of
/// the main thread is not destroyed. Meant for static variables: it is never released.
///
/// In place of `thread_local`, for types with a destructor: where memory for registering the destructor is
/// lacking, glibc ends the process, while `of_this_thread` throws std::bad_alloc.
template <typename T>
class PerThread {
 public:
  [[nodiscard]] T& of_this_thread() const {
    if (void* const object = pointer_.get()) return *static_cast<T*>(object);
    auto object = std::make_unique<T>();
    pointer_.set(object.get());
    return *object.release();
  }

 private:
  detail::ThreadPointer pointer_{[](void* object) { delete static_cast<T*>(object); }};
};

}  // namespace normscope
