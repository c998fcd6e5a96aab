#include "out_of_memory.hpp"

#include <gmp.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "session.hpp"

namespace normscope::cli {
namespace {

const char* program = "normscope";

[[noreturn]] void end_uncaught() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    end_out_of_memory();
  } catch (...) {
    std::abort();
  }
  // The runtime also ends here where it has no memory for an exception.
  if (void* const memory = std::malloc(std::size_t{1} << 16); memory != nullptr) {
    std::free(memory);
    std::abort();
  }
  end_out_of_memory();
}

// GMP's own functions print two words and abort.
void* allocate(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) end_out_of_memory();
  return memory;
}

void* reallocate(void* old, std::size_t /*old_size*/, std::size_t size) {
  void* const memory = std::realloc(old, size);
  if (memory == nullptr) end_out_of_memory();
  return memory;
}

void release(void* memory, std::size_t /*size*/) { std::free(memory); }

/// Before the initialization of any other static variable of the program.
__attribute__((constructor(101))) void prepare() {
  std::set_terminate(end_uncaught);
  mp_set_memory_functions(allocate, reallocate, release);
}

}  // namespace

void name_program(const char* name) { program = name; }

void write_plainly(std::string_view text) {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

void complain_plainly(std::string_view text) {
  write_plainly({program, std::strlen(program)});
  write_plainly(text);
}

void end_out_of_memory() {
  complain_plainly(": out of memory\n");
  ::_exit(bad_input);
}

}  // namespace normscope::cli
